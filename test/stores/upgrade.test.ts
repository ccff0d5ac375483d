/**
 * A release migrates a database on which the one before serves, and is taken back again: each request has its row, once,
 * and statistics are exact, all the while.
 */
import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { migrate } from '../../src/adapters/postgres/migrate.ts';
import { readMigrations } from '../../src/adapters/postgres/migration-files.ts';
import { createPool } from '../../src/adapters/postgres/pool.ts';
import { readSums } from '../../src/adapters/postgres/read-sums.ts';
import { sumUp } from '../../src/adapters/postgres/rollup-keeper.ts';
import { endBy } from '../harness/gateway/fault-world.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { sealingKeys, startGateway } from '../harness/gateway/start-gateway.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { expectLedgersAgree } from '../harness/ledgers/fault-ledgers.ts';
import { becomeKnown, failures, startLoad } from '../harness/ledgers/fault-load.ts';
import { patient } from '../harness/measure/crowding.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { untilReadyIs, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import { startBalancer } from '../harness/servers/fault-balancer.ts';
import { createDatabase } from '../harness/servers/postgres.ts';
import { closeAfterTest } from '../harness/servers/use-started.ts';
import { startVendorPack } from '../harness/vendors/vendor-pack.ts';
import { earlierBuild } from './support/earlier-build.ts';
import type { ReleaseBefore } from './support/releases-before.ts';
import { insertOf, releasesBefore } from './support/releases-before.ts';

/** The delay of the chart: clients let go of idle connections before it is over, as they are told. */
const drain = { GW_DRAIN_DELAY_SECONDS: '5', GW_DRAIN_SECONDS: '30' };
/** Longer than a migration may keep a row waiting, which is a second. */
const writerPatienceMs = 2_000;
const userId = '00000000-0000-4000-8000-000000000001';

async function database(migrations: number) {
  const made = await createDatabase({ migrated: false });
  if (migrations > 0) await migrate(made.url, { migrations: readMigrations().slice(0, migrations) });
  const pool = createPool(made.url, 6, { patienceMs: Math.round(patient(writerPatienceMs)) });
  closeAfterTest({
    close: async () => {
      await pool.end();
      await made.drop();
    },
  });
  return { database: { ...made, drop: () => Promise.resolve() }, pool };
}

type Pool = ReturnType<typeof createPool>;

/** Writes one row after the other as that release does, by several writers, until it is stopped. */
function writeAs(release: ReleaseBefore, pool: Pool) {
  const text = insertOf(release);
  const written: string[] = [];
  let stopped = false;
  const write = async () => {
    while (!stopped) {
      const row = {
        ...{ row_id: randomUUID(), user_id: userId, created_at: new Date().toISOString(), is_other: false },
        ...{
          request_id: randomUUID(),
          mode: 'gw/balanced',
          provider: 'openai',
          model: 'gpt-6',
          status: 'success',
        },
        ...{
          usage_reported: true,
          usage_basis: 'complete',
          input_tokens: 3,
          output_tokens: 2,
          latency_ms: 20,
        },
        ...{ cached_input_tokens: 0, cache_write_tokens: 0, cache_write_long_tokens: 0, reasoning_tokens: 0 },
        ...{
          cost_micro_usd: 7,
          saved_micro_usd: 0,
          cache_hit: false,
          stream: false,
          residency_actual: 'global',
        },
        ...{ attempts: [], tables_version: '0123456789abcdef' },
      };
      await pool.query(text, [JSON.stringify(row)]);
      written.push(row.row_id);
    }
  };
  const writing = Promise.all([write(), write(), write()]);
  let failure: unknown = null;
  writing.catch((cause: unknown) => {
    failure = cause;
  });
  return {
    more: async (count: number) => {
      const wanted = written.length + count;
      await eventually(async () => {
        if (failure !== null) throw failure;
        return written.length >= wanted || undefined;
      });
    },
    stop: async () => {
      stopped = true;
      await writing;
      return written;
    },
  };
}

test.each(releasesBefore.map((release) => [release.name, release] as const))(
  'rows of a release before (%s) go on while this one migrates and serves, and after it is taken back',
  async (_, release) => {
    const { database: own, pool } = await database(release.migrations);
    await pool.query('ALTER TABLE schema_migrations DROP COLUMN checksum, DROP COLUMN oldest_code');
    const before = writeAs(release, pool);
    onTestFinished(async () => void (await before.stop().catch(() => undefined)));
    await before.more(50);
    const gateway = await startForTest({ database: own });
    const users = [await registerWithKeys(gateway.url, ['openai'])];
    const load = startLoad({ url: gateway.url, users, workers: 2 });
    await Promise.all([load.more(40), before.more(50)]);
    const sent = await load.stop();
    expect(failures(sent)).toEqual([]);
    await untilRowsStored(gateway);
    await expectLedgersAgree({ databaseUrl: own.url, vendors: gateway.vendors, sent, users });
    await endBy('SIGTERM', gateway);
    await before.more(50);
    const written = await before.stop();

    const { rows } = await pool.query<{ row_id: string }>(
      'SELECT row_id FROM request_logs WHERE user_id = $1',
      [userId],
    );
    expect(rows.map((row) => row.row_id).sort()).toEqual([...written].sort());
    const all = { since: null, until: null, groupBy: [] } as const;
    const cost = { requests: BigInt(written.length), cost_micro_usd: 7n * BigInt(written.length) };
    expect(await readSums(pool, userId, all)).toMatchObject({ totals: cost });
    await sumUp(pool);
    expect(await readSums(pool, userId, all)).toMatchObject({ totals: cost });
    expect((await pool.query('SELECT FROM schema_migrations WHERE checksum IS NULL')).rowCount).toBe(0);
  },
);

test('the build before serves until this one takes over, and again when it is taken back', async ({
  skip,
}) => {
  const before = earlierBuild();
  if (before === null) return skip('this checkout has no history, and so no build before this one');
  const { database: own } = await database(0);
  const vendors = closeAfterTest(await startVendorPack());
  const balancer = closeAfterTest(await startBalancer());
  const env = { GW_SEALING_KEYS: sealingKeys(), ...drain };
  const started: GatewayUnderTest[] = [];
  closeAfterTest({ close: () => Promise.all(started.map((gateway) => gateway.stop('SIGKILL'))) });
  const start = async (main?: string): Promise<GatewayUnderTest> => {
    const gateway = await startGateway({
      database: own,
      vendors,
      env,
      ...(main === undefined ? {} : { main }),
    });
    started.push(gateway);
    await untilReadyIs(gateway, 200);
    await balancer.add(gateway);
    return gateway;
  };
  const end = async (gateway: GatewayUnderTest) => {
    expect(await endBy('SIGTERM', gateway)).toBe(0);
    balancer.remove(gateway);
  };
  const first = await start(before.main);
  const users = await Promise.all([1, 2].map(() => registerWithKeys(balancer.url, ['openai'])));
  const known = (await Promise.all(users.map((user) => becomeKnown(balancer.url, user)))).flat();
  const load = startLoad({ url: balancer.url, users, workers: 4 });
  await load.more(60);
  const second = await start();
  await load.more(60);
  await end(first);
  await load.more(60);
  const third = await start(before.main);
  await load.more(60);
  await end(second);
  await load.more(60);
  const sent = [...known, ...(await load.stop())];
  expect(failures(sent)).toEqual([]);
  await untilRowsStored(third);
  await expectLedgersAgree({ databaseUrl: own.url, vendors, sent, users });
});
