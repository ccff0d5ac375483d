import { delimiter, dirname } from 'node:path';
import { handleStopSignals, isStopped, run } from './lib/children.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { findNode } from './lib/node-binary.mjs';
import { inProject, root, toldOf } from './lib/project.mjs';

/**
 * `node scripts/stage.mjs NAME [arguments]`: runs test/harness/stages/NAME.ts, which is TypeScript, with all packages
 * installed and a Node that reads it. Itself runs on any Node >= 18.
 */
async function main([name, ...args]) {
  handleStopSignals();
  await ensureInstalled('all');
  const node = isStopped() ? null : await findNode();
  if (isStopped()) return 1;
  const { code } = await run(node, [inProject('test', 'harness', 'stages', `${name}.ts`), ...args], {
    cwd: root,
    env: { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` },
    // With the channel it learns of our sudden end.
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  return code ?? 1;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(toldOf(error) ?? error);
  // The last line of every stage is its tally.
  console.log('0 passed, 1 failed, 0 skipped');
  process.exitCode = 1;
}
