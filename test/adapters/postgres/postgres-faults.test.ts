import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createAccounts } from '../../../src/adapters/postgres/accounts.ts';
import { newRowsInto } from '../../../src/adapters/postgres/log-insert.ts';
import { migrate } from '../../../src/adapters/postgres/migrate.ts';
import { createPool } from '../../../src/adapters/postgres/pool.ts';
import {
  addProviderKey,
  deleteProviderKey,
  listProviderKeys,
} from '../../../src/adapters/postgres/provider-keys.ts';
import { createRequestLog } from '../../../src/adapters/postgres/request-log.ts';
import type { PostgresRequestLog } from '../../../src/adapters/postgres/request-log-contract.ts';
import { registerUser } from '../../../src/adapters/postgres/users.ts';
import { createSealer } from '../../../src/adapters/system/sealer.ts';
import { hashServiceKey } from '../../../src/core/account/service-key.ts';
import { Secret } from '../../../src/core/secret/secret.ts';
import { StoreAway } from '../../../src/core/store-away.ts';
import { expectInTime } from '../../harness/measure/fault-bounds.ts';
import type { PostgresProcess } from '../../harness/servers/postgres.ts';
import { startPostgres } from '../../harness/servers/postgres.ts';
import { logRow, printerInto, rolledUp, storedRowIds } from './log-rows.ts';
import { newUser, readLogs, storeKey } from './stored.ts';

let server: PostgresProcess;
let pool: pg.Pool;
let skippedMs = 0;
const clock = { monotonicMs: () => performance.now() + skippedMs };
const sealer = createSealer([{ id: 'k', key: randomBytes(32) }]);

beforeAll(async () => {
  server = await startPostgres();
  await migrate(server.url);
  // The test server acknowledges commits before they are written; these tests kill it.
  const admin = createPool(server.url, 1);
  await admin.query('ALTER DATABASE postgres SET synchronous_commit = on');
  await admin.end();
});

afterAll(() => server.close());

beforeEach(() => {
  skippedMs = 0;
  pool = createPool(server.url, 4);
});

afterEach(() => pool.end());

const faults = [
  ['hangs', () => server.stopSignal(), async () => server.continueSignal()],
  ['is killed', () => server.kill(), () => server.start()],
] as const;

async function timed<T>(
  work: () => Promise<T>,
): Promise<{ outcome: PromiseSettledResult<T>; tookMs: number }> {
  const startedAtMs = performance.now();
  const [outcome] = await Promise.allSettled([work()]);
  return { outcome, tookMs: performance.now() - startedAtMs };
}

async function untilServed(work: () => Promise<unknown>): Promise<void> {
  await expect
    .poll(() =>
      work().then(
        () => 'served',
        () => 'refused',
      ),
    )
    .toBe('served');
}

const key = {
  provider: 'openai',
  apiKey: new Secret('s'),
  baseUrl: null,
  declaredRegion: null,
  label: null,
} as const;

test.each(faults)(
  'while Postgres %s every management call answers 503 within 2 s',
  async (_name, begin, end) => {
    await newUser(pool);
    const userId = randomUUID();
    await begin();
    const calls = await Promise.all(
      [
        () => registerUser(pool, { email: 'x@example.com' }),
        () => addProviderKey(pool, sealer, userId, key, randomUUID()),
        () => listProviderKeys(pool, userId),
        () => deleteProviderKey(pool, userId, randomUUID()),
        () => readLogs(pool, userId, { since: null, limit: 10, cursor: null }),
        ...Array.from({ length: 20 }, () => () => listProviderKeys(pool, userId)),
      ].map((call) => timed<unknown>(call)),
    );
    for (const { outcome, tookMs } of calls) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(StoreAway) });
      expectInTime(tookMs, 1_000);
    }
    await end();
    await untilServed(() => listProviderKeys(pool, userId));
  },
);

test.each(faults)(
  'while Postgres %s known users are served, for ten minutes at most, and unknown ones get 503',
  async (_name, begin, end) => {
    const user = await newUser(pool);
    const keyHash = hashServiceKey(user.apiKey);
    const accounts = createAccounts({ pool, directUrl: server.url, clock });
    const known = await accounts.find(keyHash);
    await begin();
    await expect.poll(() => accounts.listening()).toBe(false);
    skippedMs += 2000;
    const first = await timed(async () => accounts.find(keyHash));
    expect(first.outcome).toEqual({ status: 'fulfilled', value: known });
    expectInTime(first.tookMs, 1_000);
    expect(accounts.find(keyHash)).toBe(known);
    const unknown = await timed(async () => accounts.find(hashServiceKey('gw_unknown')));
    expect(unknown.outcome).toMatchObject({ reason: expect.any(StoreAway) });
    skippedMs += 9 * 60_000;
    expect(accounts.find(keyHash)).toBe(known);
    skippedMs += 2 * 60_000;
    const late = await timed(async () => accounts.find(keyHash));
    expect(late.outcome).toMatchObject({ reason: expect.any(StoreAway) });
    await end();
    await untilServed(async () => accounts.find(keyHash));
    await expect.poll(() => accounts.listening()).toBe(true);
    await accounts.close();
  },
);

test.each(faults)(
  'while Postgres %s under load no row is lost or doubled, and answers wait no longer',
  async (_name, begin, end) => {
    await pool.query('TRUNCATE request_logs, unsummed_requests, request_rollups');
    const spoolDir = mkdtempSync(join(tmpdir(), 'postgres-faults-'));
    const logPool = createPool(server.url, 3);
    const told: unknown[] = [];
    const log: PostgresRequestLog = await createRequestLog({
      onAway: (cause) => told.push(cause),
      onBack: () => told.push('back'),
      pool: logPool,
      spool: { directory: spoolDir, maxBytes: 16 * 1024 * 1024 },
      onBrokenSpool: (path) => expect.unreachable(path),
      whenFull: 'refuse',
      clock,
      printer: printerInto(),
      insert: newRowsInto(logPool, () => {}),
    });
    const ids: string[] = [];
    const waitsMs: number[] = [];
    let loading = true;
    const load = Array.from({ length: 8 }, async () => {
      while (loading) {
        const row = logRow();
        const startedAtMs = performance.now();
        await log.record(row);
        waitsMs.push(performance.now() - startedAtMs);
        ids.push(row.rowId);
        await delay(5);
      }
    });
    await expect.poll(() => ids.length).toBeGreaterThan(100);
    for (let round = 0; round < 2; round += 1) {
      const before = ids.length;
      await begin();
      await expect.poll(() => log.stats().away).toBe(true);
      await expect.poll(() => ids.length).toBeGreaterThan(before + 100);
      await end();
      await expect.poll(() => log.stats().away).toBe(false);
      const [first, ...others] = told.splice(0);
      expect(first).toBeInstanceOf(Error);
      expect(others.at(-1)).toBe('back');
    }
    loading = false;
    await Promise.all(load);
    await log.drain(10_000);
    await untilServed(() => pool.query('SELECT 1'));
    const stored = await storedRowIds(pool);
    expect(stored).toHaveLength(ids.length);
    expect(stored).toEqual([...ids].sort());
    expect(await rolledUp(pool)).toBe(ids.length);
    expect(log.stats()).toMatchObject({
      accepted: ids.length,
      dropped: 0,
      queueDepth: 0,
      spoolBytes: 0,
      printed: 0,
    });
    // 50 ms of waiting, and what a machine with other work adds.
    expectInTime(Math.max(...waitsMs), 300);
    await logPool.end();
    rmSync(spoolDir, { recursive: true });
  },
);

test('a connection for changes that hangs alone does not hide a deletion for longer than a second', async () => {
  const user = await newUser(pool);
  const keyHash = hashServiceKey(user.apiKey);
  const { id } = await storeKey(pool, sealer, user.userId, key);
  const accounts = createAccounts({ pool, directUrl: server.url, clock });
  await expect.poll(() => accounts.listening()).toBe(true);
  expect((await accounts.find(keyHash))?.keys).toHaveLength(1);
  const { rows } = await pool.query<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE application_name = 'model-gateway-listen'`,
  );
  for (const { pid } of rows) process.kill(pid, 'SIGSTOP');
  await deleteProviderKey(pool, user.userId, id);
  const deletedAtMs = performance.now();
  const held = async (): Promise<number> => (await accounts.find(keyHash))?.keys.length ?? 0;
  await expect.poll(held, { interval: 5 }).toBe(0);
  // One second.
  expectInTime(performance.now() - deletedAtMs, 1_000);
  for (const { pid } of rows) process.kill(pid, 'SIGCONT');
  await accounts.close();
});

test('with Postgres away from the start, rows are kept and go in once it is there', async () => {
  const spoolDir = mkdtempSync(join(tmpdir(), 'postgres-faults-'));
  await pool.query('TRUNCATE request_logs, unsummed_requests, request_rollups');
  await server.kill();
  const logPool = createPool(server.url, 3);
  const log = await createRequestLog({
    pool: logPool,
    spool: { directory: spoolDir, maxBytes: 16 * 1024 * 1024 },
    onBrokenSpool: (path) => expect.unreachable(path),
    whenFull: 'refuse',
    clock,
    printer: printerInto(),
    insert: newRowsInto(logPool, () => {}),
  });
  await Promise.all(Array.from({ length: 20 }, () => log.record(logRow())));
  expect(log.stats()).toMatchObject({ spooled: 20, away: true });
  await server.start();
  await expect.poll(() => log.stats().spoolBytes).toBe(0);
  expect(await storedRowIds(pool)).toHaveLength(20);
  await log.drain(1000);
  await logPool.end();
  rmSync(spoolDir, { recursive: true });
});
