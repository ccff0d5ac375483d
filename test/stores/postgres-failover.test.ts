/**
 * `DATABASE_URL` names a primary and its standby. When the standby takes over, known users are served all the while, rows
 * wait in the spool, and what clients, vendors and log rows say agrees to the row.
 */
import { expect, test } from 'vitest';
import type { World } from '../harness/gateway/fault-world.ts';
import { makeWorld } from '../harness/gateway/fault-world.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { expectLedgersAgree } from '../harness/ledgers/fault-ledgers.ts';
import type { Load } from '../harness/ledgers/fault-load.ts';
import { becomeKnown, failures, startLoad } from '../harness/ledgers/fault-load.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectWithin } from '../harness/measure/fault-bounds.ts';
import { metric, untilReadyIs, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import { sql } from '../harness/servers/fault-postgres.ts';
import type { ReplicatedPostgres } from '../harness/servers/replicated-postgres.ts';
import { startReplicatedPostgres } from '../harness/servers/replicated-postgres.ts';
import { closeAfterTest } from '../harness/servers/use-started.ts';

/** Of the promise: from the promotion until everything works as before. */
const boundMs = 5_000;

interface UnderLoad {
  readonly postgres: ReplicatedPostgres;
  readonly world: World;
  readonly gateway: GatewayUnderTest;
  readonly users: readonly User[];
  readonly known: readonly Load['sent'][number][];
  readonly load: Load;
}

async function startUnderLoad(): Promise<UnderLoad> {
  const postgres = closeAfterTest(await startReplicatedPostgres());
  const world = closeAfterTest(await makeWorld({ url: postgres.url, drop: () => Promise.resolve() }));
  const gateway = await world.start();
  await untilReadyIs(gateway, 200);
  const users = await Promise.all([1, 2].map(() => registerWithKeys(world.url, ['openai'])));
  const known = (await Promise.all(users.map((user) => becomeKnown(world.url, user)))).flat();
  const load = startLoad({ url: world.url, users, workers: 4 });
  await load.more(60);
  return { postgres, world, gateway, users, known, load };
}

/** Rows are committed, keys are stored, and changes of keys are heard. */
async function untilBack({ gateway, world }: UnderLoad): Promise<void> {
  await registerWithKeys(world.url, ['openai']);
  await untilRowsStored(gateway);
  await eventually(async () => (await metric(gateway, 'gw_key_changes_listening')) === 1 || undefined);
}

async function expectNothingLost({ postgres, world, gateway, users, known, load }: UnderLoad): Promise<void> {
  await load.more(60);
  const sent = [...known, ...(await load.stop())];
  expect(failures(sent)).toEqual([]);
  await untilRowsStored(gateway);
  await expectLedgersAgree({ databaseUrl: postgres.standbyUrl, vendors: world.vendors, sent, users });
}

test('the primary crashes and its standby is promoted', async () => {
  const under = await startUnderLoad();
  under.postgres.killPrimary();
  await under.load.more(60);
  await under.postgres.promote();
  const promotedAtMs = performance.now();
  await untilBack(under);
  expectWithin('all is as before after the promotion', performance.now() - promotedAtMs, boundMs);
  await expectNothingLost(under);
});

test('a primary that becomes read-only, and ends no connection, is left for the standby that is promoted', async () => {
  const under = await startUnderLoad();
  await sql(under.postgres.primaryUrl, 'ALTER SYSTEM SET default_transaction_read_only = on');
  await sql(under.postgres.primaryUrl, 'SELECT pg_reload_conf()');
  await under.load.more(60);
  await under.postgres.promote();
  const promotedAtMs = performance.now();
  const left = () =>
    sql(
      under.postgres.primaryUrl,
      "SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'model-gateway%'",
    );
  await untilBack(under);
  await eventually(async () => (await left()).length === 0 || undefined);
  expectWithin('all is as before after the promotion', performance.now() - promotedAtMs, boundMs);
  await expectNothingLost(under);
});
