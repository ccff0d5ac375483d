import type { LocalServer } from './local-server.ts';
import { serveLocally } from './local-server.ts';

/** Long enough for the generation before to have been scraped. */
const ROLLOUT_AFTER_MS = 20_000;

/**
 * A stand-in for kube-state-metrics, since no gateway tells what Kubernetes made of it: the objects of one release, as
 * its metrics describe them. Nothing changes but the Deployment, which is rolled out once.
 */
export async function startKubeStandIn(labels: Readonly<Record<string, string>>): Promise<LocalServer> {
  const object = (kind: string, name: string) => `${kind}="${name}",${written(labels)}`;
  const scaler = object('horizontalpodautoscaler', 'model-gateway');
  const deployment = object('deployment', 'model-gateway');
  const condition = (name: string, status: string) => `${scaler},condition="${name}",status="${status}"`;
  const begin = performance.now();
  const generation = () => (performance.now() - begin < ROLLOUT_AFTER_MS ? 3 : 4);
  const lines = () => [
    ['kube_horizontalpodautoscaler_status_current_replicas', scaler, 2],
    ['kube_horizontalpodautoscaler_status_desired_replicas', scaler, 2],
    ['kube_horizontalpodautoscaler_spec_min_replicas', scaler, 2],
    ['kube_horizontalpodautoscaler_spec_max_replicas', scaler, 10],
    [
      'kube_horizontalpodautoscaler_spec_target_metric',
      `${scaler},metric_name="gw_inflight_streams",metric_target_type="average"`,
      100,
    ],
    ['kube_horizontalpodautoscaler_status_condition', condition('ScalingLimited', 'false'), 1],
    ['kube_horizontalpodautoscaler_status_condition', condition('ScalingLimited', 'true'), 0],
    ['kube_deployment_status_observed_generation', deployment, generation()],
    ['kube_deployment_spec_replicas', deployment, 2],
    ['kube_deployment_status_replicas_available', deployment, 2],
  ];
  return serveLocally((_request, response) => {
    const text = lines().map(([metric, ofWhat, value]) => `${metric}{${ofWhat}} ${value}\n`);
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(text.join(''));
  });
}

function written(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(',');
}
