/**
 * PgBouncer in transaction mode: `DATABASE_URL` leads through it, `DATABASE_DIRECT_URL` past it for what needs a
 * connection of its own (LISTEN, migrations, prepared inserts, cursors).
 */
import { expect, test } from 'vitest';
import { chatOk } from '../harness/gateway/chat.ts';
import { makeWorld } from '../harness/gateway/fault-world.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { expectLedgersAgree } from '../harness/ledgers/fault-ledgers.ts';
import { startLoad } from '../harness/ledgers/fault-load.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { metric, untilReadyIs, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import { sql } from '../harness/servers/fault-postgres.ts';
import { adminDatabaseUrl, createDatabase } from '../harness/servers/postgres.ts';
import { useServer, useStarted } from '../harness/servers/use-started.ts';
import type { KeyRecord } from '../harness/vendors/wire-types.ts';
import { startPgBouncer } from './support/pgbouncer.ts';

/** Fewer than the twenty-eight that two replicas would like. */
const serverConnections = 2;
const pgbouncer = useServer(() => startPgBouncer(adminDatabaseUrl(), serverConnections));
const database = useStarted(
  () => createDatabase({ migrated: false }),
  (made) => made.drop(),
);
const world = useServer(() => makeWorld(database));
const settings = () => ({
  DATABASE_URL: pgbouncer.through(database.url),
  DATABASE_DIRECT_URL: database.url,
});
const replicas = useStarted(async () => {
  const both = [await world.start(settings()), await world.startReplica(settings())] as const;
  for (const one of both) await untilReadyIs(one, 200);
  return { both };
});

test('two replicas bring up the schema, serve users and write each row once over two connections of the pooler', async () => {
  const users = await Promise.all([1, 2, 3].map(() => registerWithKeys(world.url, ['openai'])));
  const loads = replicas.both.map(({ url }) => startLoad({ url, users, workers: 4 }));
  for (const load of loads) await load.more(150);
  const sent = (await Promise.all(loads.map((load) => load.stop()))).flat();
  expect(sent.filter(({ status, whole }) => status !== 200 || !whole)).toEqual([]);
  for (const one of replicas.both) await untilRowsStored(one);
  await expectLedgersAgree({ databaseUrl: database.url, vendors: world.vendors, sent, users });
  // Those that are not past the pooler by their nature: inserts and LISTEN.
  const [pooled] = await sql<{ most: number }>(
    database.url,
    `SELECT count(*)::integer AS most FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  expect(pooled?.most).toBeLessThanOrEqual(serverConnections + replicas.both.length * (3 + 1));
});

test('keys, statistics and logs work; a deleted provider key is dead on the other replica at once', async () => {
  const [one, other] = replicas.both;
  const user = await registerWithKeys(one.url, ['openai', 'anthropic']);
  await chatOk(user.client);
  expect((await user.client.get('/v1/stats')).status).toBe(200);
  expect((await user.client.get('/v1/logs?limit=1')).status).toBe(200);
  const here = await user.client.get('/v1/service-keys');
  expect(here.status, here.text).toBe(200);
  const keys = (await user.client.get('/v1/keys')).json<KeyRecord[]>();
  const doomed = keys.find(({ provider }) => provider === 'openai');
  expect(await providerOf(other.url, user.key)).toBe('openai');
  expect((await user.client.request('DELETE', `/v1/keys/${doomed?.id}`)).status).toBe(204);
  await eventually(async () => (await providerOf(other.url, user.key)) === 'anthropic' || undefined);
});

test('a statement that waits for a lock is ended by the server, and the pooler keeps no setting of ours', async () => {
  const user = await registerWithKeys(world.url, []);
  const held = sql(database.url, 'BEGIN; LOCK TABLE provider_keys; SELECT pg_sleep(5); COMMIT');
  await eventually(async () => {
    const [lock] = await sql(
      database.url,
      `SELECT 1 FROM pg_locks WHERE relation = 'provider_keys'::regclass AND mode = 'AccessExclusiveLock'`,
    );
    return lock === undefined ? undefined : true;
  });
  const answer = await user.client.post('/v1/keys', { provider: 'openai', api_key: 'sk-x' });
  expect(answer.status, answer.text).toBe(503);
  const waiting = await sql(
    database.url,
    `SELECT query FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name <> 'model-gateway-listen'`,
  );
  expect(waiting).toEqual([]);
  await held;
  for (let connection = 0; connection < serverConnections * 2; connection += 1) {
    const [left] = await sql(pgbouncer.through(database.url), 'SHOW statement_timeout');
    expect(left).toEqual({ statement_timeout: '0' });
  }
});

test('a pooler without DATABASE_DIRECT_URL is told of, and a deleted provider key is dead there too', async () => {
  const deaf = await world.startReplica({
    DATABASE_URL: pgbouncer.through(database.url),
    DATABASE_DIRECT_URL: undefined,
    GW_MIGRATE: 'off',
  });
  await untilReadyIs(deaf, 200);
  await eventually(async () => {
    const told = deaf.logs().find(({ msg }) => String(msg).startsWith('key changes are not received'));
    return told === undefined
      ? undefined
      : String(told['reason']).includes('DATABASE_DIRECT_URL') || undefined;
  });
  expect(await metric(deaf, 'gw_key_changes_listening')).toBe(0);
  for (const one of replicas.both) expect(await metric(one, 'gw_key_changes_listening')).toBe(1);

  const user = await registerWithKeys(world.url, ['openai', 'anthropic']);
  expect(await providerOf(deaf.url, user.key)).toBe('openai');
  const keys = (await user.client.get('/v1/keys')).json<KeyRecord[]>();
  const doomed = keys.find(({ provider }) => provider === 'openai');
  expect((await user.client.request('DELETE', `/v1/keys/${doomed?.id}`)).status).toBe(204);
  await eventually(async () => (await providerOf(deaf.url, user.key)) === 'anthropic' || undefined);
});

async function providerOf(url: string, key: string): Promise<string> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gw/balanced', messages: [{ role: 'user', content: 'Hi' }] }),
  });
  return ((await response.json()) as { gateway: { provider: string } }).gateway.provider;
}
