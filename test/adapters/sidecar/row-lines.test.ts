/** The rows of a gateway without a database, one line of NDJSON each. */
import { expect, test } from 'vitest';
import type { Lines } from '../../../src/adapters/sidecar/row-lines.ts';
import { RowLines } from '../../../src/adapters/sidecar/row-lines.ts';
import type { SettledRequest } from '../../../src/core/settled-request.ts';
import { logRow } from '../postgres/log-rows.ts';

function opened(isRead = true) {
  const written: string[] = [];
  const waits: number[] = [];
  const lines: Lines = {
    write(line, onEnd) {
      if (isRead) written.push(line);
      onEnd(isRead);
    },
    flush: () => undefined,
  };
  return { log: new RowLines(lines, (waitedMs) => waits.push(waitedMs)), written, waits };
}

test('a row is a line, and the answer waits for nothing', async () => {
  const { log, written, waits } = opened();
  const row = logRow();
  await log.record(row);
  expect(JSON.parse(written[0] as string)).toMatchObject({ row_id: row.rowId });
  expect([log.stats().written, log.stats().dropped, ...waits]).toEqual([1, 0, 0]);
});

test('a row that nobody reads is counted as dropped', async () => {
  const { log } = opened(false);
  await log.record(logRow());
  expect([log.stats().written, log.stats().dropped]).toEqual([0, 1]);
});

test.each(Object.keys(logRow()) as (keyof SettledRequest)[])(
  'a bug in what is said of %s costs no row',
  async (name) => {
    const { log, written } = opened();
    const row = logRow();
    const get = (): never => {
      throw new TypeError(`${name} is poison`);
    };
    await log.record(Object.defineProperty({ ...row }, name, { get }));
    const line = JSON.parse(written[0] as string) as Record<string, unknown>;
    if (name !== 'rowId') expect(line['row_id']).toBe(row.rowId);
    if ('missing' in line) expect(JSON.stringify(line['missing'])).toContain(`${name} is poison`);
  },
);
