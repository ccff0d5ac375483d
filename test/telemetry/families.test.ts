/** The names, labels and texts of the metric families against the conventions. */
import { describe, expect, test } from 'vitest';
import { countedFamilies } from '../../src/telemetry/families/counted-families.ts';
import { metricFamilies } from '../../src/telemetry/families/families.ts';
import type { ReadFamily } from '../../src/telemetry/families/family.ts';
import { readFamilies } from '../../src/telemetry/families/read-families.ts';

interface Listed {
  readonly kind: string;
  readonly help: string;
  readonly labels: readonly string[];
}
const families = Object.entries<Listed | ReadFamily<'gauge', []>>(metricFamilies);

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

test('none is both counted here and read from others', () => {
  expect(Object.keys(countedFamilies).filter((name) => name in readFamilies)).toEqual([]);
});
