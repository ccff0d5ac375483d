import { handleStopSignals, isStopped, run } from './lib/children.mjs';
import { extentForStart } from './lib/extents.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { findNode } from './lib/node-binary.mjs';
import { inCache, inProject, root, toldOf } from './lib/project.mjs';

/**
 * `npm start`: the packages that run, Node, then src/dev.ts as it is, since Node strips types faster than a compiler
 * builds. Needs any Node >= 18 and nothing from node_modules.
 */

/** What suits a try-out on one's own machine; the environment overrides each of them. */
const developmentDefaults = {
  GW_HOST: '127.0.0.1',
  GW_ADMIN_HOST: '127.0.0.1',
  GW_LOG_LEVEL: 'warn',
  GW_DRAIN_SECONDS: '2',
};

/** Of Node 22 about the types. */
const quiet = ['--disable-warning=ExperimentalWarning'];

async function main() {
  handleStopSignals();
  // Two downloads, so at once. Both come to their end before either's failure is told.
  const [installed, located] = await Promise.allSettled([
    ensureInstalled(extentForStart(process.env)),
    findNode(),
  ]);
  if (isStopped()) return 0;
  for (const result of [installed, located]) if (result.status === 'rejected') throw result.reason;
  const node = located.value;
  const { code } = await run(node, [...quiet, inProject('src', 'dev.ts')], {
    cwd: root,
    // The compile cache saves a third of a second from the second start on.
    env: { NODE_COMPILE_CACHE: inCache('compiled'), ...developmentDefaults, ...process.env },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  return code ?? 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  const told = toldOf(error);
  if (told === null) throw error;
  console.error(told);
  process.exitCode = 1;
}
