/** Rules of the templates that hold without Helm. */
import { describe, expect, test } from 'vitest';
import { providerTraits, vendorNames } from '../../src/core/provider-name.ts';
import { routingTablesSchema } from '../../src/core/tables/routing-tables.ts';
import type { Values } from './chart-files.ts';
import { chartFolder, listFiles, readFile, readYaml } from './chart-files.ts';

const files = listFiles(`${chartFolder}/templates`, /\.(yaml|tpl|txt)$/);
const sources = files.map((path) => ({ path, text: readFile(path) }));
const all = sources.map(({ text }) => text).join('\n');
const values = readYaml(`${chartFolder}/values.yaml`) as Values;

/** Actions without comments. */
function actions(text: string): string[] {
  return [...text.matchAll(/\{\{-?\s*([\s\S]*?)\s*-?\}\}/g)]
    .map((match) => match[1] ?? '')
    .filter((action) => !action.startsWith('/*'));
}

/** False when a step of `a.b.c` is missing; a map without defaults, a list and a null may hold anything. */
function isKnown(path: readonly string[]): boolean {
  let value: unknown = values;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    if (!(step in value)) return Object.keys(value).length === 0;
    value = (value as Values)[step];
  }
  return true;
}

function leaves(map: Values, prefix: string): string[] {
  return Object.entries(map).flatMap(([key, value]) => {
    const path = prefix === '' ? key : `${prefix}.${key}`;
    const isBranch = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isBranch && Object.keys(value).length > 0 ? leaves(value as Values, path) : [path];
  });
}

const textOf = (name: string): string => sources.find(({ path }) => path.endsWith(`/${name}`))?.text ?? '';
const vendorsInIndia = vendorNames.filter((name) => providerTraits[name].residency === 'india');

test.each([
  ['tiers that can be served in India', '_validate.tpl', /has "(\w+)" \$providers/g],
  ['how tiers are to be served there', '_validate.tpl', /a candidate with India residency \((.+?)\)/g],
  ['addresses that count as in India', '_warnings.tpl', /- vendors\.(\w+) counts as in India/g],
])('the vendors in India are those of the gateway: %s', (_what, name, pattern) => {
  const named = [...textOf(name).matchAll(pattern)].flatMap(([, list = '']) => list.split(/, | or /));
  expect(named.sort()).toEqual([...vendorsInIndia].sort());
});

test('what the chart takes for the tables without an entry is what the gateway takes', () => {
  const { cooldown } = routingTablesSchema.parse(readYaml(`${chartFolder}/files/tables.yaml`));
  const taken = [...textOf('_validate.tpl').matchAll(/dig "cooldown" "(\w+)" (\d+) \$document/g)];
  expect(taken.map(([, name, value]) => [name, Number(value)])).toEqual([
    ['first_seconds', cooldown.first_seconds],
    ['longest_seconds', cooldown.longest_seconds],
  ]);
});

describe.each(sources)('$path', ({ text }) => {
  test('closes what it opens', () => {
    let depth = 0;
    for (const action of actions(text)) {
      if (/^(if|range|with|define|block)\b/.test(action)) depth += 1;
      if (/^end\b/.test(action)) depth -= 1;
      expect(depth).toBeGreaterThanOrEqual(0);
    }
    expect(depth).toBe(0);
    expect(text.match(/\{\{/g)?.length).toBe(text.match(/\}\}/g)?.length);
  });

  test('reads only values that exist', () => {
    const unknown = [...text.matchAll(/\.Values((?:\.[A-Za-z]+)+)/g)]
      .map((match) => (match[1] ?? '').slice(1))
      .filter((path) => !isKnown(path.split('.')));
    expect(unknown).toEqual([]);
  });

  test('includes only templates that are defined', () => {
    for (const [, name] of text.matchAll(/include "([^"]+)"/g)) expect(all).toContain(`define "${name}"`);
  });

  test('generates no secret, looks nothing up, mounts no subPath', () => {
    expect(text).not.toMatch(/\b(rand\w+|gen\w+(Key|Cert|CA)|htpasswd|derivePassword|lookup)\b/);
    expect(text).not.toMatch(/subPath/);
    expect(text).not.toMatch(/kind: (Secret|ClusterRole|ClusterRoleBinding)\b/);
    expect(text).not.toContain('helm.sh/resource-policy');
  });
});

test('a checksum replaces pods for the collector’s configuration only, since it is read once', () => {
  expect(all.match(/checksum\/[\w-]+:.*|.*sha256sum.*/g)?.map((line) => line.trim())).toEqual([
    'checksum/otel-collector: {{ include "model-gateway.otelCollectorConfig" . | sha256sum }}',
  ]);
});

test('every value is read by a template', () => {
  const unread = leaves(values, '').filter((path) => {
    const steps = path.split('.');
    // Directly, or through one of the maps above it.
    return !steps.some((_, index) => {
      const above = steps.slice(0, index + 1).join('.');
      const last = steps.at(-1) ?? '';
      return (
        new RegExp(`\\.Values\\.${above}\\b`).test(all) && (index === steps.length - 1 || isRead(last, above))
      );
    });
  });
  expect(unread).toEqual([]);
});

/** A member of a map that is used as a whole, or under `with`. */
function isRead(name: string, map: string): boolean {
  const whole = new RegExp(
    `(toYaml|range[^}]*) [$]?\\.Values\\.${map}\\b(?!\\.)|with [$]?\\.Values\\.${map} \\}\\}`,
  );
  return whole.test(all) || new RegExp(`\\.${name}\\b`).test(all);
}

test('the chart needs no other chart', () => {
  const chart = readYaml(`${chartFolder}/Chart.yaml`) as Values;
  expect(chart['dependencies']).toBeUndefined();
  expect(chart['kubeVersion']).toBe('>=1.30.0-0');
  const annotations = chart['annotations'] as Record<string, string>;
  for (const name of ['license', 'changes', 'images', 'links', 'prerelease'])
    expect(annotations).toHaveProperty([`artifacthub.io/${name}`]);
  const [type, icon = ''] = String(chart['icon']).split(',');
  expect(type).toBe('data:image/svg+xml;base64');
  expect(readFile(`${chartFolder}/Chart.yaml`)).toContain(`# ${Buffer.from(icon, 'base64').toString()}`);
});
