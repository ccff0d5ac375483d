/** What operators see of log rows that the fast insert refuses. */
import pg from 'pg';
import { expect, test } from 'vitest';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { refusedBatches } from '../../src/wiring/refused-batches.ts';

test('each batch is counted, and one line a minute says why, without what the row says', async () => {
  const metrics = new Metrics();
  const lines: unknown[] = [];
  let nowMs = 5;
  const log = { warn: (fields: object, message: string) => lines.push({ ...fields, message }) };
  const onRefused = refusedBatches(log as never, { monotonicMs: () => nowMs }, metrics.stores);
  const counted = async () => {
    const text = await metrics.registry.metrics();
    return Number(/^gw_log_batches_refused_total (\d+)$/m.exec(text)?.[1]);
  };
  expect(await counted()).toBe(0);
  const refusal = new pg.DatabaseError('null value in column "user_id"', 1, 'error');
  onRefused(Object.assign(refusal, { code: '23502', detail: 'Failing row contains (secret).' }));
  for (let batch = 0; batch < 50; batch += 1) onRefused(new RangeError('beyond'));
  expect(await counted()).toBe(51);
  const message = expect.stringContaining('refused by the fast insert');
  const first = { reason: 'null value in column "user_id"', code: '23502', message };
  expect(lines).toEqual([first]);
  nowMs += 60_000;
  onRefused(new RangeError('beyond'));
  onRefused('a word');
  expect(lines).toEqual([first, { reason: 'beyond', code: null, message }]);
  expect(await counted()).toBe(53);
});
