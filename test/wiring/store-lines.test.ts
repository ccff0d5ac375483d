import { expect, test } from 'vitest';
import { createPool } from '../../src/adapters/postgres/pool.ts';
import { openSchemaGate } from '../../src/adapters/postgres/schema-gate.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { refusalLine, requestLogLines, waitingLines } from '../../src/wiring/store-lines.ts';

test('of an outage each reason is told once, a few at most, and its end', () => {
  const lines: string[] = [];
  const { onAway, onBack } = requestLogLines({
    warn: (fields: object, text: string) => void lines.push(`${text} ${JSON.stringify(fields)}`),
    info: (text: string) => void lines.push(text),
  } as never);
  const away = (reason: unknown): void => onAway?.(reason);
  for (const reason of [new Error('disk full'), new Error('no answer'), new Error('disk full'), 'a text'])
    away(reason);
  onBack?.();
  for (let port = 0; port < 50; port += 1) away(new Error(`connect ${port}`));
  const line = (reason: string): string =>
    `log rows do not reach Postgres: they wait in the spool {"reason":"${reason}"}`;
  expect(lines).toEqual([
    ...['disk full', 'no answer', 'a text'].map(line),
    'log rows reach Postgres again',
    ...['connect 0', 'connect 1', 'connect 2', 'connect 3', 'connect 4'].map(line),
  ]);
});

test('a disk that takes no rows is told with its reason, once in an outage', () => {
  const lines: string[] = [];
  const { onSpoolRefuses, onBack } = requestLogLines({
    error: (fields: object, text: string) => void lines.push(`${text} ${JSON.stringify(fields)}`),
    info: () => undefined,
  } as never);
  const full = 'ENOSPC: no space left on device, write';
  for (let row = 0; row < 20; row += 1) onSpoolRefuses?.(full);
  onBack?.();
  onSpoolRefuses?.(full);
  const line = `the disk of the spool takes no rows: they are printed, and chat requests refused {"reason":"${full}"}`;
  expect(lines).toEqual([line, line]);
});

test('a cache store that refuses commands is told of once a minute, with a reason of that minute', () => {
  const lines: string[] = [];
  let nowMs = 0;
  const log = { warn: ({ reason }: { reason: string }) => void lines.push(reason) };
  const onRefusal = refusalLine(log as never, { monotonicMs: () => nowMs });
  for (; nowMs < 90_000; nowMs += 100)
    onRefusal(nowMs % 200 === 0 ? 'OOM command not allowed' : 'READONLY script');
  expect(lines).toEqual(['OOM command not allowed', 'OOM command not allowed']);
});

test('a spool that is full is told of, once in an outage', () => {
  const lines: string[] = [];
  const { onSpoolFull, onBack } = requestLogLines({
    error: (text: string) => void lines.push(text),
    info: () => undefined,
  } as never);
  for (let row = 0; row < 20; row += 1) onSpoolFull?.();
  onBack?.();
  onSpoolFull?.();
  const line = 'the spool is full: chat requests are refused, or their rows printed (GW_SPOOL_FULL)';
  expect(lines).toEqual([line, line]);
});

/** What it says of these looks at the database, each at its second. */
function linesOf(looks: readonly (readonly [second: number, reason: string, error: unknown])[]) {
  const lines: [second: number, fields: object][] = [];
  let now = 0;
  const log = { warn: (fields: object, text: string) => void lines.push([now, { ...fields, text }]) };
  const onWaiting = waitingLines(log as never, { monotonicMs: () => now * 1000 });
  for (const [second, reason, error] of looks) {
    now = second;
    onWaiting(reason, error);
  }
  return lines;
}

const text = 'waiting for the database';
const refused = (): Error =>
  Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:5432'), { code: 'ECONNREFUSED' });
const away = { reason: 'away', code: 'ECONNREFUSED', message: 'connect ECONNREFUSED 10.0.0.1:5432', text };

test('the wait for the database is told when it begins, and then once a minute', () => {
  const looks = Array.from({ length: 75 }, (_, look) => [look * 2, 'away', refused()] as const);
  expect(linesOf(looks)).toEqual([0, 60, 120].map((second) => [second, away]));
});

test('another reason is told at once, and the first one again', () => {
  const starting = Object.assign(new Error('the database system is starting up'), { code: '57P03' });
  const lines = linesOf([
    [0, 'away', refused()],
    [2, 'away', refused()],
    [4, 'starting', starting],
    [6, 'starting', starting],
    [8, 'away', refused()],
  ]);
  expect(lines).toEqual([
    [0, away],
    [4, { reason: 'starting', code: '57P03', message: 'the database system is starting up', text }],
    [8, away],
  ]);
});

test.each<[what: string, error: unknown, fields: object]>([
  ['says no word twice', new Error('away'), {}],
  [
    'has the words of each address',
    Object.assign(new AggregateError([new Error('connect ::1'), new Error('connect 127.0.0.1')]), {
      code: 'ECONNREFUSED',
    }),
    { code: 'ECONNREFUSED', message: 'connect ::1, connect 127.0.0.1' },
  ],
  ['is one line', new Error('one\ntwo'), { message: 'one two' }],
  ['has what is no error', 'thrown', { message: 'thrown' }],
  ['has what is nothing', null, { message: 'null' }],
])('of what was thrown the line %s', (_what, error, fields) => {
  expect(linesOf([[0, 'away', error]])).toEqual([[0, { reason: 'away', ...fields, text }]]);
});

test('a start without a database tells its reason in a line without a stack', async () => {
  const stopping = new AbortController();
  const url = 'postgres://u:p@127.0.0.1:1/d';
  const pool = createPool(url, 1);
  const { promise: line, resolve } = Promise.withResolvers<string>();
  const log = createLogger('warn', { write: resolve });
  const onWaiting = waitingLines(log, { monotonicMs: () => 0 });
  openSchemaGate({ pool, directUrl: url, migrateAtBoot: false, log, onWaiting, signal: stopping.signal });
  expect(JSON.parse(await line)).toEqual({
    ...{ level: 'warn', time: expect.any(String), msg: text, reason: 'Postgres cannot be reached' },
    ...{ code: 'ECONNREFUSED', message: 'connect ECONNREFUSED 127.0.0.1:1' },
  });
  stopping.abort();
  await pool.end();
});
