/** The names, labels and texts of the metric families against the conventions. */
import { describe, expect, test } from 'vitest';
import { metricFamilies } from '../../src/telemetry/families.ts';
import type { ReadFamily } from '../../src/telemetry/family.ts';

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
