import { readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { handleStopSignals, isStopped, run } from '../lib/children.mjs';
import { ensureInstalled } from '../lib/install.mjs';
import { findNode } from '../lib/node-binary.mjs';
import { inProject, LaunchError, root } from '../lib/project.mjs';
import { makeRunFolder } from '../lib/run-folder.mjs';
import { startControlPlane } from './control-plane.mjs';
import { buildTools, toolNames, toolsFolder } from './tools.mjs';

/** What tests against somebody else's cluster need; our own needs all tools. */
const clientTools = ['helm', 'kubectl'];

/**
 * `npm run test:cluster [-- vitest arguments]`: the chart and k8s/ against a real Kubernetes API: the cluster that
 * KUBECONFIG names, or a control plane of its own that is gone afterwards. The first run builds the programs with Go (some
 * minutes); without Go the run is skipped, or fails with GW_REQUIRE_TOOLS=1. The last line is "N passed, N failed,
 * N skipped".
 */
async function main() {
  handleStopSignals();
  await ensureInstalled();
  if (isStopped()) return 1;
  const node = await findNode();
  if (isStopped()) return 1;
  if (node !== process.execPath) return await repeatUnder(node);

  const isForeign = Boolean(process.env.KUBECONFIG);
  const built = await buildTools(isForeign ? clientTools : toolNames).then(() => true, unavailable);
  if (isStopped()) return 1;
  if (!built) return report({ passed: 0, failed: 0, skipped: 1 });
  const folder = makeRunFolder();
  let plane;
  try {
    if (!isForeign) {
      plane = await startControlPlane(folder.path);
      console.log('A control plane of its own is up.');
    }
    const own = plane === undefined ? {} : { KUBECONFIG: plane.kubeconfig, TEST_CLUSTER_IS_OWN: '1' };
    return report(await runTests(node, folder.path, own));
  } finally {
    await plane?.stop();
    await folder.remove();
  }
}

/** Without the programs there is nothing to test: a skip, unless all tools are required. */
function unavailable(error) {
  if (!(error instanceof LaunchError) || process.env.GW_REQUIRE_TOOLS === '1') throw error;
  console.log(`Skipped: ${error.message}`);
  return false;
}

function report({ passed, failed, skipped }) {
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0 ? 0 : 1;
}

async function repeatUnder(node) {
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  const args = [inProject('scripts', 'cluster', 'run.mjs'), ...process.argv.slice(2)];
  const { code } = await run(node, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  return code ?? 1;
}

async function runTests(node, folder, own) {
  const tallyFile = join(folder, 'tally.json');
  const env = { ...process.env, ...own, GW_TEST_TALLY_FILE: tallyFile, TEST_CLUSTER_TOOLS: toolsFolder() };
  const vitest = [inProject('node_modules', 'vitest', 'vitest.mjs'), 'run', '--config'];
  const args = [...vitest, inProject('test', 'cluster', 'vitest.config.ts'), ...process.argv.slice(2)];
  const { code } = await run(node, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
  if (isStopped()) return { passed: 0, failed: 1, skipped: 0 };
  const tally = JSON.parse(readFileSync(tallyFile, 'utf8'));
  if (code !== 0 && tally.failed === 0) tally.failed = 1;
  return tally;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof LaunchError ? error.message : error);
  process.exitCode = report({ passed: 0, failed: 1, skipped: 0 });
}
