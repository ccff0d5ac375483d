import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { capacityRow, needsOf } from '../harness/scale/capacity.ts';
import { inProject } from '../harness/stage/project.ts';

/** What a rate of requests needs: docs/scale.md says what the formula says. */

const rates = [1, 10, 100, 1_000, 10_000, 100_000];

test.each(rates)('the row of %i requests a second is in docs/scale.md', (perSecond) => {
  const row = capacityRow(perSecond);
  const isThere = readFileSync(inProject('docs', 'scale.md'), 'utf8').includes(`\n${row}`);
  expect(isThere, `edit the table of docs/scale.md to have\n  ${row}`).toBe(true);
});

test('ten times the load never needs less, and a row never more of Postgres', () => {
  const needs = rates.map(needsOf);
  for (const [index, more] of needs.entries()) {
    const less = needs[index - 1];
    if (less === undefined) continue;
    for (const [name, value] of Object.entries(more))
      expect(value, name).toBeGreaterThanOrEqual(less[name as keyof typeof less]);
    expect(more.postgresCores / less.postgresCores).toBeLessThanOrEqual(10.0001);
  }
});
