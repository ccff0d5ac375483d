import { handleStopSignals, run } from './lib/children.mjs';
import { findNode } from './lib/node-binary.mjs';
import { inProject, LaunchError } from './lib/project.mjs';

/**
 * `npm run crash-test -- --url http://gateway:8080 --key gw_…`: the classic faults of upstreams against any deployment,
 * as a table. Needs no installed package; scripts/crash-test alone, copied anywhere, runs with `node main.ts`.
 */
try {
  handleStopSignals();
  const node = await findNode();
  const { code } = await run(node, [inProject('scripts', 'crash-test', 'main.ts'), ...process.argv.slice(2)]);
  process.exitCode = code ?? 1;
} catch (error) {
  if (!(error instanceof LaunchError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
