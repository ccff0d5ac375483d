/** Postgres fails in every way it knows: chat goes on, no row is lost or doubled, nothing hangs. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { newServiceKey } from '../../src/core/account/service-key.ts';
import { chat, chatOk } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { addKey, providerSecret, registerUser, registerWithKeys } from '../harness/gateway/register.ts';
import { sealingKeys, startGateway } from '../harness/gateway/start-gateway.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { expectLedgersAgree } from '../harness/ledgers/fault-ledgers.ts';
import type { Load, Sent } from '../harness/ledgers/fault-load.ts';
import { becomeKnown, failures, sendChat, startLoad } from '../harness/ledgers/fault-load.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectInTime, expectWithin, median, timed } from '../harness/measure/fault-bounds.ts';
import { metric, probe, untilReadyIs, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import { sql, startCrashablePostgres } from '../harness/servers/fault-postgres.ts';
import { useDatabase, useServer } from '../harness/servers/use-started.ts';
import { startVendorPack } from '../harness/vendors/vendor-pack.ts';

const unavailable = { status: 503, type: 'service_unavailable_error', code: 'database_unavailable' } as const;
/** A key of the right form that nobody holds. */
const strangerKey = newServiceKey(randomBytes(32));

/** Milliseconds of `count` chats one after the other; each must be served. */
async function chatTimes(url: string, user: User, count: number, into: Sent[]): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const sent = await sendChat(url, user);
    expect(sent.status, sent.text).toBe(200);
    times.push(sent.tookMs);
    into.push(sent);
  }
  return times;
}

/** Every management call answers 503 in our envelope; the slowest one's milliseconds. */
async function refusedManagement(url: string, user: User): Promise<number> {
  const calls = [
    () => httpClient(url).post('/v1/users', { email: `${crypto.randomUUID()}@example.com` }),
    () => user.client.get('/v1/keys'),
    () => user.client.post('/v1/keys', { provider: 'together', api_key: 'later' }),
    () => user.client.delete(`/v1/keys/${crypto.randomUUID()}`),
    () => user.client.get('/v1/logs'),
    () => user.client.get('/v1/stats'),
  ];
  const times = await Promise.all(
    calls.map((send) => timed(async () => expectError(await send(), unavailable))),
  );
  return Math.max(...times);
}

describe('a Postgres that is down when the gateway starts', () => {
  test('delays readiness only, and is used as soon as it is there', async () => {
    const postgres = await startCrashablePostgres();
    await postgres.kill();
    const gateway = await startGateway({ database: postgres.database });
    try {
      expect(await probe(gateway, '/healthz')).toBe(200);
      expect(await probe(gateway, '/readyz')).toBe(503);
      expectError(
        await httpClient(gateway.url).post('/v1/users', { email: 'early@example.com' }),
        unavailable,
      );
      expectError(await chat(httpClient(gateway.url, strangerKey)), unavailable);
      await postgres.start();
      expectWithin('ready after Postgres came up', await timed(() => untilReadyIs(gateway, 200)), 5_000);
      const user = await registerWithKeys(gateway.url);
      await chatOk(user.client);
    } finally {
      expect(await gateway.stop()).toBe(0);
      await postgres.close();
    }
  });
});

describe('a Postgres that fails under load', () => {
  const postgres = useServer(startCrashablePostgres);
  const gateway = useGateway(() => ({ database: postgres.database }));
  let load: Load | undefined;

  afterEach(async () => {
    await load?.stop();
    await postgres.restore();
  });

  /** Users whose account the gateway has in memory. */
  async function knownUsers(sent: Sent[]): Promise<User[]> {
    gateway.vendors.clear();
    const users = await Promise.all([1, 2, 3].map(() => registerWithKeys(gateway.url, ['openai'])));
    for (const user of users) sent.push(...(await becomeKnown(gateway.url, user)));
    return users;
  }

  async function expectNothingLost(sent: readonly Sent[], users: readonly User[]): Promise<void> {
    await untilRowsStored(gateway);
    const { vendors } = gateway;
    await expectLedgersAgree({ databaseUrl: postgres.database.url, vendors, sent, users });
  }

  test('by a crash, is done without: chats are served, their rows replayed', async () => {
    const sent: Sent[] = [];
    const users = await knownUsers(sent);
    load = startLoad({ url: gateway.url, users });
    await load.more(60);
    await postgres.kill();
    await load.more(100);
    expectWithin('management refused', await refusedManagement(gateway.url, users[0] as User), 2_000);
    expectError(await chat(httpClient(gateway.url, strangerKey)), unavailable);
    expect(await probe(gateway, '/readyz'), 'an outage does not unready a replica').toBe(200);
    expect(await metric(gateway, 'gw_log_spool_bytes')).toBeGreaterThan(0);
    await postgres.start();
    const recovery = timed(() =>
      eventually(async () => (await users[0]?.client.get('/v1/keys'))?.status === 200 || undefined),
    );
    expectWithin('management back', await recovery, 5_000);
    await load.more(60);
    sent.push(...(await load.stop()));
    expect(failures(sent)).toEqual([]);
    await expectNothingLost(sent, users);
  });

  test('three times in a row, loses and doubles nothing', async () => {
    const sent: Sent[] = [];
    const users = await knownUsers(sent);
    load = startLoad({ url: gateway.url, users });
    for (let crash = 0; crash < 3; crash += 1) {
      await load.more(30);
      await postgres.kill();
      await load.more(30);
      await postgres.start();
    }
    await load.more(30);
    sent.push(...(await load.stop()));
    expect(failures(sent)).toEqual([]);
    await expectNothingLost(sent, users);
  });

  test('by hanging, holds nobody for longer than 2 s, and chat for no longer than usual', async () => {
    const sent: Sent[] = [];
    const users = await knownUsers(sent);
    const [user] = users as [User, ...User[]];
    const usualMs = median(await chatTimes(gateway.url, user, 20, sent));
    postgres.stopSignal();
    load = startLoad({ url: gateway.url, users });
    expectWithin('management refused by a hung server', await refusedManagement(gateway.url, user), 2_000);
    expectWithin(
      'stranger refused by a hung server',
      await timed(async () => expectError(await chat(httpClient(gateway.url, strangerKey)), unavailable)),
      2_000,
    );
    await load.more(30);
    const slowest = Math.max(...load.sent.map((one) => one.tookMs));
    expectWithin('slowest chat while the hang was found out', slowest, 2_000);
    const hungMs = median(await chatTimes(gateway.url, user, 20, sent));
    expectWithin('chat beside a hung server, beyond its usual time', hungMs - usualMs, 50);
    postgres.continueSignal();
    const recovery = timed(() => untilRowsStored(gateway));
    expectWithin('management back', await timed(() => managementBack(user)), 5_000);
    sent.push(...(await load.stop()));
    await recovery;
    expect(failures(sent)).toEqual([]);
    await expectNothingLost(sent, users);
  });

  async function managementBack(user: User): Promise<void> {
    await eventually(async () => (await user.client.get('/v1/keys')).status === 200 || undefined);
  }

  test('by cutting its sessions, is reached again on the next call', async () => {
    const sent: Sent[] = [];
    const users = await knownUsers(sent);
    load = startLoad({ url: gateway.url, users });
    for (let cut = 0; cut < 5; cut += 1) {
      await sql(
        postgres.database.url,
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
      );
      await load.more(15);
    }
    await managementBack(users[0] as User);
    sent.push(...(await load.stop()));
    expect(failures(sent)).toEqual([]);
    await expectNothingLost(sent, users);
  });

  test('by a lock on the log table, delays pages and rows, not chats', async () => {
    const sent: Sent[] = [];
    const users = await knownUsers(sent);
    const [user] = users as [User, ...User[]];
    const usualMs = median(await chatTimes(gateway.url, user, 20, sent));
    const locker = new pg.Client({ connectionString: postgres.database.url });
    await locker.connect();
    await locker.query('BEGIN');
    await locker.query('LOCK TABLE request_logs IN ACCESS EXCLUSIVE MODE');
    const times = await chatTimes(gateway.url, user, 20, sent);
    expectWithin('chat beside a locked log table, beyond its usual time', median(times) - usualMs, 50);
    expectWithin('slowest chat beside a locked log table', Math.max(...times), usualMs + 100);
    const page = timed(async () => expectError(await user.client.get('/v1/logs'), unavailable));
    expectWithin('page refused', await page, 2_000);
    expect((await user.client.get('/v1/keys')).status, 'other tables are served').toBe(200);
    await locker.query('ROLLBACK');
    await locker.end();
    await expectNothingLost(sent, users);
  });
});

describe('two replicas on one database', () => {
  const database = useDatabase();
  const vendors = useServer(startVendorPack);
  const shared = { database, vendors, env: { GW_SEALING_KEYS: sealingKeys() } };
  const first = useGateway(shared);
  const second = useGateway(shared);

  const toOpenAi = { headers: { 'x-gateway-override-model': 'openai:gpt-test' } };

  async function warmUser(): Promise<{ user: User; keyId: string }> {
    const user = await registerUser(first.url);
    const { id } = await addKey(user, { provider: 'openai', api_key: providerSecret(user, 'openai') });
    // Twice on each: the second one is served from memory. Where Postgres is late, it is asked for again.
    for (const { url } of [first, second, first, second])
      await eventually(async () => (await sendChat(url, user, toOpenAi)).status === 200 || undefined);
    return { user, keyId: id };
  }

  async function untilRefusedBySecond(user: User): Promise<void> {
    await eventually(async () => (await sendChat(second.url, user, toOpenAi)).status === 422 || undefined);
  }

  test('a user and a key registered on one are used on the other at once', async () => {
    const user = await registerUser(first.url);
    expectError(await chat(httpClient(second.url, user.key)), {
      status: 422,
      type: 'invalid_request_error',
      code: 'no_provider_key',
    });
    await addKey(user, { provider: 'openai', api_key: providerSecret(user, 'openai') });
    await chatOk(httpClient(second.url, user.key));
  });

  test('a key deleted on one is refused by the other within 1 s', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { user, keyId } = await warmUser();
      expect((await user.client.delete(`/v1/keys/${keyId}`)).status).toBe(204);
      const tookMs = await timed(() => untilRefusedBySecond(user));
      expectInTime(tookMs, 1_000);
    }
  });

  test('a key deleted while the other hears nothing is refused by it within 1 s', async () => {
    const { user, keyId } = await warmUser();
    await sql(
      database.url,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'model-gateway-listen'`,
    );
    expect((await user.client.delete(`/v1/keys/${keyId}`)).status).toBe(204);
    expectInTime(await timed(() => untilRefusedBySecond(user)), 1_000);
  });

  test('a key replaced on one is the one that the other sends within 1 s', async () => {
    const { user, keyId } = await warmUser();
    await user.client.delete(`/v1/keys/${keyId}`);
    await addKey(user, { provider: 'openai', api_key: 'sk-replaced' });
    const replacedAtMs = performance.now();
    await eventually(async () => {
      await sendChat(second.url, user, toOpenAi);
      return vendors.openai.ledger.at(-1)?.headers['authorization'] === 'Bearer sk-replaced' || undefined;
    });
    expectInTime(performance.now() - replacedAtMs, 1_000);
  });
});
