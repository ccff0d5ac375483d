/** Every setting of the process can be reached through the chart. */
import { expect, test } from 'vitest';
import { environmentSchema } from '../../src/environment.ts';
import { listFiles, readObjects } from './chart-files.ts';

/** Settings without a value of their own, and why; `extraEnv` reaches them all the same. */
const withoutValue: Readonly<Record<string, string>> = {
  GW_EVIDENCE_KEY: 'who signs reports holds it, and no pod that serves',
  GW_UPSTREAM_CLIENT: 'a way back for one release, by extraEnv',
  OTEL_EXPORTER_OTLP_PROTOCOL: 'a collector that takes OTLP takes it over HTTP',
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'the same',
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'traces are all that goes to telemetry.otlpEndpoint',
  OTEL_SDK_DISABLED: 'an empty telemetry.otlpEndpoint switches tracing off',
  OTEL_TRACES_EXPORTER: 'the same',
};

interface Container {
  readonly name: string;
  readonly env?: readonly { readonly name: string }[];
}

/** Names of the gateway's variables in all renderings; a secret counts under the name of its setting. */
function rendered(): Set<string> {
  const deployments = listFiles('test/chart/rendered', /\.yaml$/)
    .flatMap(readObjects)
    .filter(({ kind }) => kind === 'Deployment');
  const containers = deployments.flatMap(({ spec }) => {
    const template = spec?.['template'] as { spec: Record<string, Container[]> } | undefined;
    return [...(template?.spec['initContainers'] ?? []), ...(template?.spec['containers'] ?? [])];
  });
  const gateways = containers.filter(({ name }) => name === 'model-gateway');
  const names = gateways.flatMap(({ env = [] }) => env.map(({ name }) => name));
  return new Set(names.map((name) => (name in environmentSchema.shape ? name : name.replace(/_FILE$/, ''))));
}

test('each setting follows from a value, or is on the list of those that need none', () => {
  const found = rendered();
  const missing = Object.keys(environmentSchema.shape).filter((name) => !found.has(name));
  expect(missing.sort()).toEqual(Object.keys(withoutValue).sort());
});
