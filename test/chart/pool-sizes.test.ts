/** How many connections to Postgres a pod has is counted by the chart too, and told by the settings. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { poolSizes } from '../../src/wiring/stores.ts';

const read = (path: string): string => readFileSync(join(import.meta.dirname, '../..', path), 'utf8');

const listening = 1;
const { query, log, operators, spend } = poolSizes;
const behindPooler = log + listening;
const withoutPooler = behindPooler + query;

test('the chart counts those of a pod beside its pool', () => {
  const text = read('charts/model-gateway/templates/_arithmetic.tpl');
  const counted = /define "model-gateway.fixedConnections".*\n.*ternary (\d+) \(ternary (\d+) (\d+) /.exec(
    text,
  );
  expect(counted?.slice(1).map(Number)).toEqual([
    behindPooler,
    withoutPooler + operators + spend,
    withoutPooler,
  ]);
});

test.each([
  ['src/environment.ts', `(${query + log} more serve logs, ${listening} listens)`],
  ['src/environment.ts', `Takes up to ${operators + spend} more connections to Postgres`],
  [
    'docs/sizing.md',
    `+ ${query} (logs and statistics) + ${log} (inserts) + ${listening} (key changes), + ${operators + spend} with`,
  ],
])('%s tells of %s', (path, text) => {
  expect(read(path)).toContain(text);
});
