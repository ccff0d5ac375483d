/** What is said of rows that went to a stdout which took them at first, and then refused them. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { RowLines } from '../../../src/adapters/sidecar/row-lines.ts';
import type { LineStream } from '../../../src/telemetry/stdout-lines.ts';
import { StdoutLines } from '../../../src/telemetry/stdout-lines.ts';
import { logRow } from '../postgres/log-rows.ts';

const rows = 100;

/** As the stream of a pipe without a reader, and of a full disk: it says so after the write, and never holds anything. */
function refusing(isRefused: (text: string) => boolean): LineStream {
  return {
    writableLength: 0,
    write(text, left) {
      process.nextTick(() => left(isRefused(text) ? new Error('EPIPE') : null));
      return true;
    },
    on: () => undefined,
  };
}

test.each<[what: string, isRefused: (text: string) => boolean, written: number, dropped: number]>([
  ['gone', () => true, 0, rows],
  ['there', () => false, rows, 0],
  ['gone for one row', (text) => text.includes('row-40'), rows - 1, 1],
])('rows count as what became of them: the reader is %s', async (_what, isRefused, written, dropped) => {
  const lines = new StdoutLines(refusing(isRefused));
  const log = new RowLines(lines, () => undefined);
  for (let index = 0; index < rows; index += 1) {
    await log.record(logRow({ rowId: `row-${index}` }));
    await turn();
  }
  expect(log.stats()).toMatchObject({ accepted: rows, written, dropped, queueDepth: 0 });
  await lines.close();
});

test('a row that stdout has not answered for is waiting', async () => {
  const answers: ((error?: Error | null) => void)[] = [];
  const lines = new StdoutLines({
    writableLength: 0,
    write: (_text, left) => answers.push(left) > 0,
    on: () => undefined,
  });
  const log = new RowLines(lines, () => undefined);
  await log.record(logRow());
  expect(log.stats()).toMatchObject({ accepted: 1, written: 0, dropped: 0, queueDepth: 1 });
  for (const answer of answers) answer(new Error('ENOSPC'));
  expect(log.stats()).toMatchObject({ accepted: 1, written: 0, dropped: 1, queueDepth: 0 });
  await lines.close();
});
