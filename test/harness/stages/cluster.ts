import { startControlPlane } from '../cluster/control-plane.ts';
import { buildTools, toolNames, toolsFolder } from '../cluster/tools.ts';
import { oneSkip, runStage, skipOrThrow, suiteTally, withRunFolder } from '../stage/run-stage.ts';

/** What tests against somebody else's cluster need; our own needs all tools. */
const clientTools = ['helm', 'kubectl'] as const;

/**
 * `npm run test:cluster [-- vitest arguments]`: the chart and k8s/ against a real Kubernetes API: the cluster that
 * KUBECONFIG names, or a control plane of its own that is gone afterwards. The first run builds the programs with Go
 * (some minutes); without Go the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage(async () => {
  const isForeign = Boolean(process.env['KUBECONFIG']);
  const built = await buildTools(isForeign ? clientTools : toolNames).then(() => true, skipOrThrow);
  if (built === null) return oneSkip;
  return withRunFolder(async (folder) => {
    const tools = { TEST_CLUSTER_TOOLS: toolsFolder() };
    if (isForeign) return suiteTally('cluster', folder, tools);
    const plane = await startControlPlane(folder);
    try {
      console.log('A control plane of its own is up.');
      const own = { KUBECONFIG: plane.kubeconfig, TEST_CLUSTER_IS_OWN: '1' };
      return await suiteTally('cluster', folder, { ...own, ...tools });
    } finally {
      await plane.stop();
    }
  });
});
