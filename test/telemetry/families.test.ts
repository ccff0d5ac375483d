/** The table of metric families against its document, and the names and labels against the conventions. */
import { describe, expect, test } from 'vitest';
import { metricFamilies } from '../../src/telemetry/families.ts';
import type { ReadFamily } from '../../src/telemetry/family.ts';
import { readDocument } from '../docs/documents.ts';

interface Listed {
  readonly kind: string;
  readonly help: string;
  readonly labels: readonly string[];
}
const families = Object.entries<Listed | ReadFamily<'gauge', []>>(metricFamilies);

const quoted = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);

/** The rows of the table: the families of each, and the labels that they have. */
const rows = readDocument('docs/telemetry.md')
  .split(/^\| family \| labels \| meaning \|$/m)[1]
  ?.trim()
  .split('\n\n')[0]
  ?.split('\n')
  .slice(1)
  .map((line) => line.split('|').slice(1, 3).map(quoted))
  .map(([names = [], labels = []]) => ({ names, labels })) as { names: string[]; labels: string[] }[];
const ours = rows.filter(({ names }) => !names.some((name) => name.endsWith('*')));

test('docs/telemetry.md has a row for every family, and none that is not there', () => {
  expect(ours.flatMap(({ names }) => names).sort()).toEqual(families.map(([name]) => name).sort());
});

test.each(ours)('the row of $names names the labels of its families', ({ names, labels }) => {
  const known = names.flatMap((name) => families.find(([own]) => own === name)?.[1].labels ?? []);
  expect([...labels].sort()).toEqual([...new Set(known)].sort());
});

describe.each(families)('%s', (name, { kind, help, labels }) => {
  test('is named as the conventions want it', () => {
    expect(name).toMatch(/^(gw|gen_ai|http)_[a-z_]+$/);
    expect(name.endsWith('_total')).toBe(kind.endsWith('counter'));
    expect(name).not.toMatch(/_(ms|milliseconds|kb|minutes)(_|$)/);
    for (const label of labels) expect(label).toMatch(/^[a-z_]+$/);
    expect(new Set(labels).size).toBe(labels.length);
  });

  test('says in a sentence what it is', () => {
    expect(help).toMatch(/^[A-Z0-9].{8,}\.$/);
  });
});
