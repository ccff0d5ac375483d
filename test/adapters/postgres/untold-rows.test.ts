/** Rows of which a column throws, as a bug of ours would make it, at every place where the log asks for their line. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, aroundEach, beforeEach, expect, test } from 'vitest';
import { lineIfTold } from '../../../src/adapters/postgres/encode-log-rows.ts';
import type { InsertNewRows } from '../../../src/adapters/postgres/log-insert.ts';
import { newRowsInto } from '../../../src/adapters/postgres/log-insert.ts';
import { createRequestLog } from '../../../src/adapters/postgres/request-log.ts';
import type {
  PostgresRequestLog,
  RequestLogOptions,
} from '../../../src/adapters/postgres/request-log-contract.ts';
import type { SettledRequest } from '../../../src/core/settled-request.ts';
import { useDatabase, useFolder, usePool } from '../../harness/servers/use-started.ts';
import { logRow, printerInto, rolledUp, storedRowIds } from './log-rows.ts';

const database = useDatabase(aroundEach);
const pool = usePool(database, 2, aroundEach);
const logPool = usePool(database, 3, aroundEach);
const spool = useFolder(aroundEach);
let printed: string[];
let log: PostgresRequestLog;

beforeEach(() => {
  printed = [];
});
afterEach(() => log.drain(0));

async function openLog(change: Partial<RequestLogOptions> = {}): Promise<void> {
  log = await createRequestLog({
    pool: logPool,
    spool: { directory: spool.path, maxBytes: 16 * 1024 * 1024 },
    onBrokenSpool: (path) => expect.unreachable(path),
    whenFull: 'refuse',
    clock: { monotonicMs: () => performance.now() },
    printer: printerInto(printed),
    insert: newRowsInto(logPool, () => {}),
    ...change,
  });
}

type Name = keyof SettledRequest;

/** A row that throws where `name` of it is read; of an override, which the log looks at before it takes it. */
function poisoned(name: Name): SettledRequest {
  const get = (): never => {
    throw new TypeError(`${name} is poison`);
  };
  return Object.defineProperty(logRow({ mode: 'override' }), name, { get });
}

const names = Object.keys(logRow()) as Name[];
const untoldNames = names.filter((name) => lineIfTold({ settled: poisoned(name), isOther: false }) === null);

const record = (rows: readonly SettledRequest[]) => Promise.all(rows.map((row) => log.record(row)));
const ids = (rows: readonly SettledRequest[]) => rows.map(({ rowId }) => rowId).sort();

function expectLaw(): void {
  const { accepted, written, spooled, dropped, queueDepth } = log.stats();
  expect(accepted).toBe(written + spooled + dropped + queueDepth);
}

interface Printed {
  readonly event: string;
  readonly row: Readonly<Record<string, unknown>>;
  readonly missing?: Readonly<Record<string, string>>;
}
const printedLines = () => printed.map((line) => JSON.parse(line) as Printed);

test('it is dropped with what can be told of it, and all others of its batch are committed', async () => {
  expect(untoldNames.length).toBeGreaterThan(20);
  await openLog();
  const good = Array.from({ length: 40 }, () => logRow());
  await record([...good.slice(0, 20), ...untoldNames.map(poisoned), ...good.slice(20)]);
  await expect.poll(() => storedRowIds(pool)).toEqual(ids(good));
  await expect.poll(() => log.stats()).toMatchObject({ dropped: untoldNames.length, queueDepth: 0, bad: 0 });
  expect(log.stats()).toMatchObject({ away: false, printed: untoldNames.length });
  expect(await rolledUp(pool)).toBe(good.length);
  expectLaw();
});

test.each(untoldNames)(
  'by %s: its line says which columns are missing and why, and has the others',
  async (name) => {
    await openLog();
    const row = poisoned(name);
    await log.record(row);
    const whole = JSON.parse(lineIfTold({ settled: logRow(), isOther: false }) ?? '');
    const [line, ...more] = printedLines();
    expect(more).toEqual([]);
    const missing = Object.keys(line?.missing ?? {});
    expect(line).toMatchObject({ event: 'request_log_row' });
    expect(missing).not.toEqual([]);
    for (const reason of Object.values(line?.missing ?? {}))
      expect(reason).toBe(`TypeError: ${name} is poison`);
    expect([...Object.keys(line?.row ?? {}), ...missing].sort()).toEqual(Object.keys(whole).sort());
    if (name !== 'rowId') expect(line?.row['row_id']).toBe(row.rowId);
  },
);

test('no writer is lost to it, however many come', async () => {
  await openLog();
  for (let batch = 0; batch < 6; batch += 1) await record(untoldNames.map(poisoned));
  const good = Array.from({ length: 100 }, () => logRow());
  await record(good);
  await expect.poll(() => storedRowIds(pool)).toEqual(ids(good));
  expect(log.stats()).toMatchObject({ away: false, dropped: 6 * untoldNames.length });
  expectLaw();
});

test('while Postgres is away it is dropped, and the others are spooled', async () => {
  const away: InsertNewRows = () =>
    Promise.reject(Object.assign(new Error('gone'), { code: 'ECONNREFUSED' }));
  const holder = await pool.connect();
  await holder.query('BEGIN; LOCK TABLE request_logs IN ACCESS EXCLUSIVE MODE');
  await openLog({ insert: away });
  const early = [logRow(), poisoned('usage'), logRow()];
  await record(early);
  expect(log.stats()).toMatchObject({ away: true, spooled: 2, dropped: 1 });
  await record([logRow(), poisoned('usage')]);
  expect(log.stats()).toMatchObject({ spooled: 3, dropped: 2, queueDepth: 0 });
  await holder.query('ROLLBACK');
  holder.release();
  await expect.poll(() => storedRowIds(pool)).toHaveLength(3);
  expectLaw();
});

test('of a commit that takes too long it is dropped when the others are spooled, and counted once', async () => {
  const commit = Promise.withResolvers<readonly number[]>();
  await openLog({ insert: () => commit.promise });
  await record([logRow(), poisoned('candidates'), logRow()]);
  expect(log.stats()).toMatchObject({ spooled: 2, dropped: 1, queueDepth: 0 });
  commit.resolve([1]);
  await sleep(0);
  expect(log.stats()).toMatchObject({ spooled: 2, dropped: 1, written: 0, printed: 1 });
});

test('a log that is closed in the midst of it drops it', async () => {
  await openLog({ insert: () => new Promise(() => {}) });
  const recorded = record([logRow(), poisoned('end'), logRow()]);
  await log.drain(0);
  await recorded;
  expect(log.stats()).toMatchObject({ spooled: 2, dropped: 1, queueDepth: 0 });
  const late = log.record(poisoned('end'));
  await late;
  expect(log.stats()).toMatchObject({ dropped: 2 });
});

test('where the spool takes nothing either, it takes no other row with it', async () => {
  const refused: InsertNewRows = () => Promise.reject(new Error('a bug'));
  await openLog({ insert: refused, spool: { directory: spool.path, maxBytes: 1 } });
  const good = [logRow(), logRow()];
  await record([...good, poisoned('price')]);
  expect(log.stats()).toMatchObject({ dropped: 3, printed: 3, queueDepth: 0 });
  const whole = printedLines().filter(({ missing }) => missing === undefined);
  expect(whole.map(({ row }) => row['row_id']).sort()).toEqual(ids(good));
});
