import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { ScaledWorkload } from '../harness/scale/autoscaler.ts';
import { reactToStep, settledAt } from '../harness/scale/autoscaler.ts';
import { inProject } from '../harness/stage/project.ts';

/** What the chart's autoscaler makes of a tenfold step of load, by the algorithm of Kubernetes. */

interface Autoscaling {
  readonly minReplicas: number;
  readonly maxReplicas: number;
  readonly cpuUtilization: number;
  readonly behavior: { readonly scaleUp: { readonly policies: ScaledWorkload['policies'] } };
}
interface Values {
  readonly autoscaling: Partial<Autoscaling>;
  readonly resources?: { readonly requests?: { readonly cpu?: string } };
}

function valuesOf(name: string): Values {
  return parse(readFileSync(inProject('charts', 'model-gateway', name), 'utf8')) as Values;
}

const usual = valuesOf('values.yaml');

function workloadOf(values: Values): ScaledWorkload {
  const autoscaling = { ...usual.autoscaling, ...values.autoscaling } as Autoscaling;
  const cpu = values.resources?.requests?.cpu ?? usual.resources?.requests?.cpu ?? '';
  return {
    ...autoscaling,
    requestCores: cpu.endsWith('m') ? Number.parseInt(cpu, 10) / 1000 : Number(cpu),
    podCores: 1,
    policies: autoscaling.behavior.scaleUp.policies,
  };
}

const high = workloadOf(valuesOf('values-ha.yaml'));
const low = workloadOf(usual);
/** As many pods as there are at least, used as much as they should be. */
const coresBefore = (workload: ScaledWorkload) =>
  (workload.minReplicas * workload.requestCores * workload.cpuUtilization) / 100;
const surroundings = { readySeconds: 10, lagSeconds: 30 };

test.each([
  ['values.yaml', low],
  ['values-ha.yaml', high],
] as const)(
  'the row of %s in docs/scale.md is what the algorithm makes of a tenfold step',
  (name, workload) => {
    const before = coresBefore(workload);
    const step = { ...surroundings, coresBefore: before, cores: 10 * before };
    const { carried, replicas, final } = settledAt(reactToStep(workload, step), workload, step);
    const row = `| \`${name}\` | ${before.toFixed(2)} → ${(10 * before).toFixed(2)} | ${workload.minReplicas} → ${replicas} | ${carried} s | ${final} s |`;
    expect(readFileSync(inProject('docs', 'scale.md'), 'utf8')).toContain(row);
  },
);

test('pods are never beyond the most, and never fewer than before', () => {
  const step = { ...surroundings, coresBefore: coresBefore(low), cores: 100 };
  const counts = reactToStep(low, step).map(({ replicas }) => replicas);
  expect(counts).toEqual([...counts].sort((one, other) => one - other));
  expect(counts.at(-1)).toBe(low.maxReplicas);
});

test('a load that stays changes nothing', () => {
  const cores = coresBefore(low);
  const moments = reactToStep(low, { ...surroundings, coresBefore: cores, cores });
  expect(new Set(moments.map(({ replicas }) => replicas))).toEqual(new Set([low.minReplicas]));
});

test.each([
  ['by percent', [{ type: 'Percent', value: 100, periodSeconds: 15 }], [2, 2, 4, 8, 16]],
  ['by pods', [{ type: 'Pods', value: 4, periodSeconds: 15 }], [2, 2, 6, 10, 14]],
  [
    'by whichever allows more',
    [
      { type: 'Percent', value: 100, periodSeconds: 15 },
      { type: 'Pods', value: 4, periodSeconds: 15 },
    ],
    [2, 2, 6, 12, 24],
  ],
] as const)('policies hold pods back %s', (_, policies, expected) => {
  const workload = { ...low, maxReplicas: 100, policies };
  const step = { readySeconds: 0, lagSeconds: 16, coresBefore: coresBefore(low), cores: 1000 };
  expect(
    reactToStep(workload, step)
      .slice(0, expected.length)
      .map(({ replicas }) => replicas),
  ).toEqual(expected);
});
