import { fork, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, aroundEach, beforeEach, expect, test, vi } from 'vitest';
import { encodeLogRow } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { newRowsInto } from '../../../src/adapters/postgres/log-insert.ts';
import { createRequestLog } from '../../../src/adapters/postgres/request-log.ts';
import type {
  PostgresRequestLog,
  RequestLogOptions,
  RequestLogStats,
  RowPrinter,
} from '../../../src/adapters/postgres/request-log-contract.ts';
import { sumUp } from '../../../src/adapters/postgres/rollup-keeper.ts';
import { encodeSpoolLine } from '../../../src/adapters/spool/spool-line.ts';
import type { SettledRequest } from '../../../src/core/settled-request.ts';
import { expectInTime } from '../../harness/measure/fault-bounds.ts';
import { useDatabase, useFolder, useGatewayPool } from '../../harness/servers/use-started.ts';
import { logRow, printerInto, rolledUp, storedRowIds } from './log-rows.ts';

const logChild = fileURLToPath(new URL('./log-child.ts', import.meta.url));
const database = useDatabase(aroundEach);
const pool = useGatewayPool(database, 2, aroundEach);
const logPool = useGatewayPool(database, 3, aroundEach);
const spool = useFolder(aroundEach);
let printed: string[];
let broken: string[];
const logs: PostgresRequestLog[] = [];

beforeEach(async () => {
  printed = [];
  broken = [];
});

afterEach(async () => {
  await Promise.all(logs.splice(0).map((log) => log.drain(0)));
  await database.drop();
});

async function openLog(change: Partial<RequestLogOptions> = {}): Promise<PostgresRequestLog> {
  const log = await createRequestLog({
    pool: logPool,
    spool: { directory: spool.path, maxBytes: 16 * 1024 * 1024 },
    onBrokenSpool: (path) => broken.push(path),
    whenFull: 'refuse',
    clock: { monotonicMs: () => performance.now() },
    printer: printerInto(printed),
    insert: newRowsInto(logPool, () => {}),
    ...change,
  });
  logs.push(log);
  return log;
}

/** Blocks every insert until the returned function is called, as a migration or a vacuum might. */
async function lockLogTable(): Promise<() => Promise<void>> {
  const client = await pool.connect();
  await client.query('SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0');
  await client.query('BEGIN; LOCK TABLE request_logs IN ACCESS EXCLUSIVE MODE');
  return async () => {
    await client.query('ROLLBACK');
    client.release();
  };
}

function expectLaw(stats: RequestLogStats): void {
  expect(stats.accepted).toBe(stats.written + stats.spooled + stats.dropped + stats.queueDepth);
}

function printedIds(): string[] {
  return printed.map((line) => (JSON.parse(line) as { row: { row_id: string } }).row.row_id);
}

function sortedIds(rows: readonly SettledRequest[]): string[] {
  return rows.map((row) => row.rowId).sort();
}

test('a row that did not need the spool is committed when its promise resolves', async () => {
  const log = await openLog();
  const rows: SettledRequest[] = [];
  // On a busy machine the first commit, with its connection to make, may take longer than a row waits.
  while (log.stats().written === 0) {
    rows.push(logRow());
    await log.record(rows.at(-1) as SettledRequest);
  }
  expect(await storedRowIds(pool)).toContain(rows.at(-1)?.rowId);
  expect(log.stats()).toMatchObject({ accepted: rows.length, queueDepth: 0, oldestRowAgeMs: 0 });
});

test('rows that wait together share a transaction', async () => {
  const log = await openLog();
  const rows = Array.from({ length: 300 }, () => logRow());
  await Promise.all(rows.map((row) => log.record(row)));
  await expect.poll(() => storedRowIds(pool)).toEqual(sortedIds(rows));
  const { rows: counted } = await pool.query<{ transactions: number }>(
    'SELECT count(DISTINCT xmin::text)::integer AS transactions FROM request_logs',
  );
  expect(counted[0]?.transactions).toBeLessThanOrEqual(4);
  expectLaw(log.stats());
});

test('a commit that takes too long lets the answer go once the row lies in the spool', async () => {
  const waits: number[] = [];
  const log = await openLog({ onKept: (waitedMs) => waits.push(waitedMs) });
  const unlock = await lockLogTable();
  const rows = Array.from({ length: 20 }, () => logRow());
  const startedAtMs = performance.now();
  await Promise.all(rows.map((row) => log.record(row)));
  const tookMs = performance.now() - startedAtMs;
  expect(tookMs).toBeGreaterThanOrEqual(45);
  expectInTime(tookMs, 150);
  expect(log.stats()).toMatchObject({ spooled: 20, queueDepth: 0 });
  expect(waits.filter((waitedMs) => waitedMs >= 45 && waitedMs <= tookMs)).toHaveLength(20);
  await unlock();
  await expect.poll(() => storedRowIds(pool)).toHaveLength(20);
  await expect.poll(() => log.stats().spoolBytes).toBe(0);
  expect(await rolledUp(pool)).toBe(20);
  expectLaw(log.stats());
});

test('while Postgres is known not to answer, nothing waits for it', async () => {
  const log = await openLog();
  const unlock = await lockLogTable();
  while (!log.stats().away) await log.record(logRow());
  const startedAtMs = performance.now();
  for (let index = 0; index < 50; index += 1) await log.record(logRow());
  expectInTime(performance.now() - startedAtMs, 50 * 8);
  await unlock();
  await expect.poll(() => log.stats().away).toBe(false);
  const { accepted } = log.stats();
  await expect.poll(() => storedRowIds(pool)).toHaveLength(accepted);
});

test('a row that Postgres refuses is set aside and keeps nobody else out', async () => {
  const log = await openLog();
  const poison = logRow({ latencyMs: 2 ** 40 });
  const rows = [
    ...Array.from({ length: 30 }, () => logRow()),
    poison,
    ...Array.from({ length: 30 }, () => logRow()),
  ];
  await Promise.all(rows.map((row) => log.record(row)));
  const good = sortedIds(rows.filter((row) => row !== poison));
  await expect.poll(() => storedRowIds(pool)).toEqual(good);
  await expect.poll(() => log.stats()).toMatchObject({ bad: 1, away: false, spoolBytes: 0 });
  expect(readFileSync(join(spool.path, 'slot-0', 'bad.ndjson'), 'utf8')).toContain(poison.rowId);
  expectLaw(log.stats());
});

test.each<[string, (path: string) => void]>([
  ['has no room', (path) => writeFileSync(path, Buffer.alloc(16 * 1024 * 1024 + 1))],
  ['cannot be written', (path) => mkdirSync(path)],
])('a row that Postgres refuses is printed where the file for such rows %s', async (_, prepare) => {
  const log = await openLog();
  prepare(join(spool.path, 'slot-0', 'bad.ndjson'));
  const poison = logRow({ latencyMs: 2 ** 40 });
  const rows = [logRow(), poison, logRow()];
  await Promise.all(rows.map((row) => log.record(row)));
  await expect.poll(() => log.stats()).toMatchObject({ bad: 1, printed: 1, away: false, spoolBytes: 0 });
  expect(printedIds()).toEqual([poison.rowId]);
  expect(await storedRowIds(pool)).toEqual(sortedIds(rows.filter((row) => row !== poison)));
  expectLaw(log.stats());
});

test('what a dead process left is taken over, once', async () => {
  const child = fork(new URL('./spool-child.ts', import.meta.url), [spool.path, '200'], { stdio: 'ignore' });
  await once(child, 'exit');
  expect(child.signalCode).toBe('SIGKILL');
  // The first takes the dead process's slot, the second looks for abandoned ones: never both.
  await Promise.all([openLog(), openLog()]);
  await expect.poll(() => storedRowIds(pool)).toHaveLength(200);
  expect(await rolledUp(pool)).toBe(200);
  await expect.poll(() => logs.reduce((sum, log) => sum + log.stats().spoolBytes, 0)).toBe(0);
});

test('a process killed under load, Postgres answering or not, loses no row it had recorded', async () => {
  const recorded: string[] = [];
  for (let kill = 0; kill < 6; kill += 1) {
    const unlock = kill % 2 === 0 ? null : await lockLogTable();
    const child = spawn(process.execPath, [logChild, database.url, spool.path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    await expect.poll(() => output.length, { interval: 5 }).toBeGreaterThan(37 * (50 + 40 * kill));
    child.kill('SIGKILL');
    await once(child, 'close');
    await unlock?.();
    recorded.push(...output.split('\n').slice(0, -1));
  }
  const log = await openLog();
  await expect.poll(() => log.stats().spoolBytes).toBe(0);
  const stored = await storedRowIds(pool);
  expect(new Set(stored).size).toBe(stored.length);
  expect(recorded.filter((id) => !stored.includes(id))).toEqual([]);
  expect(await rolledUp(pool)).toBe(stored.length);
});

test('two processes that replay the same rows store each once', async () => {
  const children = [0, 1].map(() =>
    fork(new URL('./spool-child.ts', import.meta.url), [spool.path, '300', 'same-rows'], { stdio: 'ignore' }),
  );
  await Promise.all(children.map((child) => once(child, 'exit')));
  await Promise.all([openLog(), openLog()]);
  await expect.poll(() => logs.reduce((sum, log) => sum + log.stats().replayed, 0)).toBe(300);
  await expect.poll(() => logs.map((log) => log.stats().spoolBytes)).toEqual([0, 0]);
  expect(await storedRowIds(pool)).toHaveLength(300);
  expect(await rolledUp(pool)).toBe(300);
});

test('a full spool refuses new work only while Postgres is away, and loses nothing in silence', async () => {
  let told = 0;
  const onSpoolFull = (): void => {
    told += 1;
  };
  const log = await openLog({ spool: { directory: spool.path, maxBytes: 20_000 }, onSpoolFull });
  const unlock = await lockLogTable();
  const rows: SettledRequest[] = [];
  while (log.accepting('another user')) {
    expect(told).toBe(0);
    rows.push(logRow());
    await log.record(rows.at(-1) as SettledRequest);
  }
  expect(told).toBeGreaterThan(0);
  // Requests that were already running finish; what no longer fits is printed.
  for (let index = 0; index < 20; index += 1) {
    rows.push(logRow());
    await log.record(rows.at(-1) as SettledRequest);
  }
  const stats = log.stats();
  expectLaw(stats);
  expect(stats.dropped).toBe(printed.length);
  expect(stats.dropped).toBeGreaterThan(0);
  expect(stats.spoolBytes).toBeLessThanOrEqual(20_000);
  await unlock();
  await expect.poll(() => log.accepting('another user')).toBe(true);
  await expect.poll(() => storedRowIds(pool)).toHaveLength(rows.length - stats.dropped);
  expect([...(await storedRowIds(pool)), ...printedIds()].sort()).toEqual(sortedIds(rows));
});

test('who has most of the spool waits for its rows to be taken, while others go on', async () => {
  const log = await openLog({ spool: { directory: spool.path, maxBytes: 40_000 } });
  const unlock = await lockLogTable();
  const { userId } = logRow();
  const ofUser = () => log.record(logRow({ userId }));
  while (log.accepting(userId)) await ofUser();
  const { spoolBytes } = log.stats();
  // Half of it, and the row that went beyond.
  expect(spoolBytes).toBeGreaterThan(20_000);
  expect(spoolBytes).toBeLessThan(30_000);
  expect(log.accepting('another user')).toBe(true);
  await unlock();
  await expect.poll(() => log.accepting(userId)).toBe(true);
  // What was his share of the last outage counts for nothing in the next one.
  await expect.poll(() => log.stats().spoolBytes).toBe(0);
  const relock = await lockLogTable();
  await ofUser();
  await expect.poll(() => log.stats().away).toBe(true);
  expect(log.accepting(userId)).toBe(true);
  await relock();
});

test('with the policy to drop, chat goes on when the spool is full', async () => {
  const log = await openLog({ spool: { directory: spool.path, maxBytes: 4096 }, whenFull: 'drop' });
  const unlock = await lockLogTable();
  for (let index = 0; index < 20; index += 1) await log.record(logRow());
  expect(log.accepting('another user')).toBe(true);
  expect(log.stats().dropped).toBe(printed.length);
  expect(log.stats().dropped).toBeGreaterThan(0);
  await unlock();
});

/** An operation of all files hangs until the returned function is called. */
async function hangVolume(operation: 'write' | 'read' = 'write'): Promise<() => void> {
  const file = await open(join(spool.path, 'any'), 'w');
  const files = Object.getPrototypeOf(file) as FileHandle;
  await file.close();
  const thaw = Promise.withResolvers<void>();
  const real = files[operation] as (...args: readonly unknown[]) => Promise<never>;
  const hung = vi.spyOn(files, operation).mockImplementation(async function (
    this: FileHandle,
    ...args: readonly unknown[]
  ) {
    await thaw.promise;
    return await real.apply(this, [...args]);
  });
  return () => {
    hung.mockRestore();
    thaw.resolve();
  };
}

test('a row waits, and its age says for how long, while Postgres commits nothing and the spool’s volume hangs', async () => {
  const unlock = await lockLogTable();
  const log = await openLog();
  const thaw = await hangVolume();
  const row = logRow();
  const recorded = log.record(row);
  await expect.poll(() => log.stats().oldestRowAgeMs).toBeGreaterThan(100);
  expect(log.stats()).toMatchObject({ queueDepth: 1, spooled: 0, dropped: 0 });
  thaw();
  await recorded;
  expect(log.stats()).toMatchObject({ queueDepth: 0, oldestRowAgeMs: 0, spooled: 1 });
  await unlock();
  await expect.poll(() => storedRowIds(pool)).toEqual([row.rowId]);
});

test('a volume that hangs while Postgres is away holds no answer: rows are printed, and once it goes on all is well', async () => {
  const log = await openLog();
  const unlock = await lockLogTable();
  const first = logRow();
  await log.record(first);
  await expect.poll(() => log.stats()).toMatchObject({ away: true, spooled: 1 });
  const thaw = await hangVolume();
  const rows = [logRow(), logRow(), logRow()];
  for (const row of rows) await log.record(row);
  expect(printedIds()).toEqual(rows.map((row) => row.rowId));
  expect(log.accepting('another user')).toBe(false);
  expectLaw(log.stats());
  thaw();
  await expect.poll(() => log.accepting('another user')).toBe(true);
  const last = logRow();
  await log.record(last);
  expect(printed).toHaveLength(rows.length);
  await unlock();
  await expect.poll(() => log.stats()).toMatchObject({ away: false, spoolBytes: 0 });
  expect(await storedRowIds(pool)).toEqual(sortedIds([first, last]));
});

test.each(['write', 'read'] as const)(
  'a Postgres that is back is found to be so while each %s of the spool’s volume hangs',
  async (operation) => {
    const log = await openLog();
    const unlock = await lockLogTable();
    const first = logRow();
    await log.record(first);
    await expect.poll(() => log.stats()).toMatchObject({ away: true, spooled: 1 });
    const thaw = await hangVolume(operation);
    await unlock();
    await log.record(logRow());
    await expect.poll(() => log.stats().away).toBe(false);
    const last = logRow();
    await log.record(last);
    expect(await storedRowIds(pool)).toContain(last.rowId);
    thaw();
    await expect.poll(() => log.stats().spoolBytes).toBe(0);
    expect(await storedRowIds(pool)).toEqual(expect.arrayContaining([first.rowId, last.rowId]));
  },
);

test.each(['write', 'read'] as const)(
  'a drain comes to its end while each %s of the spool’s volume hangs',
  async (operation) => {
    const log = await openLog();
    const unlock = await lockLogTable();
    await log.record(logRow());
    await expect.poll(() => log.stats()).toMatchObject({ away: true, spooled: 1 });
    const thaw = await hangVolume(operation);
    const recorded = log.record(logRow());
    await log.drain(100);
    await recorded;
    expectLaw(log.stats());
    expect(log.stats().queueDepth).toBe(0);
    thaw();
    await unlock();
  },
);

test('draining commits what waits', async () => {
  const onPrintedAtEnd = () => expect.unreachable();
  const log = await openLog({ onPrintedAtEnd });
  const rows = Array.from({ length: 100 }, () => logRow());
  const recorded = Promise.all(rows.map((row) => log.record(row)));
  // As soon as they are in their place: a busy machine may take seconds to open a connection.
  await log.drain(30_000);
  await recorded;
  expect(await storedRowIds(pool)).toEqual(sortedIds(rows));
  expect(printed).toEqual([]);
});

test('draining while Postgres takes nothing keeps the rows in the spool, prints them and tells their number', async () => {
  const told: number[] = [];
  const log = await openLog({ onPrintedAtEnd: (rows) => told.push(rows) });
  const unlock = await lockLogTable();
  const rows = Array.from({ length: 10 }, () => logRow());
  await Promise.all(rows.map((row) => log.record(row)));
  const startedAtMs = performance.now();
  await log.drain(300);
  expectInTime(performance.now() - startedAtMs, 800);
  expect(printedIds().sort()).toEqual(sortedIds(rows));
  expect(told).toEqual([10]);
  expect(log.stats()).toMatchObject({ printed: 10, dropped: 0, spooled: 10, queueDepth: 0 });
  await unlock();
  await openLog();
  await expect.poll(() => storedRowIds(pool)).toEqual(sortedIds(rows));
});

test('a drain prints the spool as fast as it is taken, and counts what was', async () => {
  const rows = Array.from({ length: 700 }, () => logRow());
  mkdirSync(join(spool.path, 'slot-0'));
  const lines = rows.map((row) => encodeSpoolLine(encodeLogRow(row)));
  writeFileSync(join(spool.path, 'slot-0', '0000000001.ndjson'), lines.join(''));
  const unlock = await lockLogTable();
  let waiting: (() => void)[] = [];
  let mostWaiting = 0;
  const taken: number[] = [];
  const printer: RowPrinter = {
    print: (_line, onLeft) => void waiting.push(onLeft),
    // The reader takes two batches, then nothing.
    untilLeft: async () => {
      mostWaiting = Math.max(mostWaiting, waiting.length);
      if (taken.length === 2) return false;
      taken.push(waiting.length);
      for (const left of waiting) left();
      waiting = [];
      return true;
    },
  };
  const log = await openLog({ printer });
  await log.drain(100);
  await unlock();
  expect(taken).toEqual([200, 200]);
  expect([mostWaiting, waiting.length]).toEqual([200, 200]);
  expect(log.stats().printed).toBe(400);
  await openLog();
  await expect.poll(() => storedRowIds(pool)).toEqual(sortedIds(rows));
});

test('what cannot be read of the spools is told of once, holds up no other row and is no word of Postgres', async () => {
  const segment = (slot: number): string => join(spool.path, `slot-${slot}`, '0000000001.ndjson');
  const kept = logRow();
  for (const slot of [0, 1, 2]) mkdirSync(join(spool.path, `slot-${slot}`));
  mkdirSync(segment(0));
  symlinkSync(join(spool.path, 'nowhere'), segment(1));
  writeFileSync(segment(2), encodeSpoolLine(encodeLogRow(kept)));
  const log = await openLog();
  await expect.poll(() => storedRowIds(pool)).toEqual([kept.rowId]);
  expect(log.stats()).toMatchObject({ away: false, replayed: 1, bad: 0 });
  expect(broken.toSorted()).toEqual([segment(0), dirname(segment(1))]);
  await log.record(logRow());
  await expect.poll(() => storedRowIds(pool)).toHaveLength(2);
  expect(broken).toHaveLength(2);
});

test('a drain prints what can be read of the spool, and waits for nothing that cannot', async () => {
  mkdirSync(join(spool.path, 'slot-0', '0000000001.ndjson'), { recursive: true });
  const unlock = await lockLogTable();
  const log = await openLog();
  const rows = [logRow(), logRow()];
  await Promise.all(rows.map((row) => log.record(row)));
  await log.drain(100);
  expect(log.stats()).toMatchObject({ printed: 2, spooled: 2 });
  await unlock();
  const next = await openLog();
  await expect.poll(() => storedRowIds(pool)).toEqual(sortedIds(rows));
  // Beyond the time that a test has: it ends because there is nothing to wait for.
  await next.drain(60_000);
});

test('a spool folder that cannot be used is refused at the start', async () => {
  const file = join(spool.path, 'file');
  writeFileSync(file, '');
  await expect(openLog({ spool: { directory: join(file, 'spool'), maxBytes: 1 } })).rejects.toThrow(
    'ENOTDIR',
  );
});

test('a user who names ever new models has a bounded number of rollup rows, and right sums', async () => {
  const log = await openLog();
  const userId = randomUUID();
  const row = (model: string) =>
    logRow({ userId, target: { provider: 'self_hosted', model }, mode: 'override' });
  for (let part = 0; part < 6; part += 1) {
    await Promise.all(Array.from({ length: 200 }, (_, index) => log.record(row(`m-${200 * part + index}`))));
  }
  // Known names are told apart as before, models of tiers and other users' always.
  await log.record(row('m-0'));
  await log.record(logRow({ userId, target: { provider: 'openai', model: 'of a tier' } }));
  const other = randomUUID();
  await log.record({ ...row('m-9999'), userId: other });
  await log.drain(5_000);
  await sumUp(pool);
  const { rows } = await pool.query<{ user_id: string; model: string; requests: string }>(
    'SELECT user_id, model, sum(requests)::text AS requests FROM request_rollups GROUP BY 1, 2',
  );
  const own = new Map(
    rows.filter((each) => each.user_id === userId).map((each) => [each.model, each.requests]),
  );
  expect(own.size).toBe(1_002);
  expect([own.get('_other'), own.get('m-0'), own.get('of a tier')]).toEqual(['200', '2', '1']);
  expect(rows.find((each) => each.user_id === other)?.model).toBe('m-9999');
  expect(await rolledUp(pool)).toBe(1_203);
});
