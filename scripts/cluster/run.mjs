import { makeRunFolder } from '../lib/run-folder.mjs';
import { oneSkip, runStage, skipOrThrow, vitestTally } from '../lib/stage.mjs';
import { startControlPlane } from './control-plane.mjs';
import { buildTools, toolNames, toolsFolder } from './tools.mjs';

/** What tests against somebody else's cluster need; our own needs all tools. */
const clientTools = ['helm', 'kubectl'];

/**
 * `npm run test:cluster [-- vitest arguments]`: the chart and k8s/ against a real Kubernetes API: the cluster that
 * KUBECONFIG names, or a control plane of its own that is gone afterwards. The first run builds the programs with Go (some
 * minutes); without Go the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage('scripts/cluster/run.mjs', async (node) => {
  const isForeign = Boolean(process.env.KUBECONFIG);
  const built = await buildTools(isForeign ? clientTools : toolNames).then(() => true, skipOrThrow);
  if (built === null) return oneSkip;
  const folder = makeRunFolder();
  let plane;
  try {
    if (!isForeign) {
      plane = await startControlPlane(folder.path);
      console.log('A control plane of its own is up.');
    }
    const own = plane === undefined ? {} : { KUBECONFIG: plane.kubeconfig, TEST_CLUSTER_IS_OWN: '1' };
    const settings = { ...own, TEST_CLUSTER_TOOLS: toolsFolder() };
    return await vitestTally(node, 'test/cluster/vitest.config.ts', folder.path, settings);
  } finally {
    await plane?.stop();
    await folder.remove();
  }
});
