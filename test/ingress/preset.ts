import type { Values } from '../chart/chart-files.ts';
import { readYaml } from '../chart/chart-files.ts';
import { render } from '../cluster/cluster.ts';
import type { KubernetesObject } from '../harness/cluster/kubernetes-object.ts';
import type { RouteRule } from './envoy.ts';

/** What the gateways of these tests are told too: the chart's own limit. */
export const bodyLimitBytes = (readYaml('charts/model-gateway/values.yaml') as { bodyLimitBytes: number })
  .bodyLimitBytes;

/** Annotations of the Ingress that the chart renders with this preset. */
export async function presetAnnotations(
  preset: string,
  values: { readonly annotations?: Readonly<Record<string, string>>; readonly tables?: Values } = {},
): Promise<Readonly<Record<string, string>>> {
  const { annotations = {}, tables = {} } = values;
  const ingress = { enabled: true, preset, annotations, hosts: ['gateway.example.com'] };
  const rendered = await find('Ingress', { ingress, tables: { document: tables } });
  return rendered.metadata.annotations ?? {};
}

/** The rules of the HTTPRoute that the chart renders. */
export async function routeRules(tables: Values = {}): Promise<readonly RouteRule[]> {
  const httpRoute = { enabled: true, parentRefs: [{ name: 'public' }] };
  const route = await find('HTTPRoute', { httpRoute, tables: { document: tables } });
  return route.spec?.['rules'] as readonly RouteRule[];
}

async function find(kind: string, values: Values): Promise<KubernetesObject> {
  const objects = await render(['test/chart/cases/defaults.yaml'], values);
  const found = objects.find((object) => object.kind === kind);
  if (found === undefined) throw new Error(`the chart renders no ${kind}`);
  return found;
}
