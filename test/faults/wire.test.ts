/** The network between the gateway and its dependencies gets slow or mute without closing anything. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { chatBody, chatPath } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { takeApart } from '../harness/gateway/sse-reader.ts';
import { tables } from '../harness/gateway/tables.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { expectLedgersAgree } from '../harness/ledgers/fault-ledgers.ts';
import type { Load, Sent } from '../harness/ledgers/fault-load.ts';
import { becomeKnown, failures, sendChat, startLoad } from '../harness/ledgers/fault-load.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectWithin, measured, median, timed } from '../harness/measure/fault-bounds.ts';
import { untilRowsStored } from '../harness/measure/fault-metrics.ts';
import { sql } from '../harness/servers/fault-postgres.ts';
import { startFaultyWire, through } from '../harness/servers/fault-proxy.ts';
import { redisUrl } from '../harness/servers/redis.ts';
import { useDatabase, useServer } from '../harness/servers/use-started.ts';
import { startVendorPack } from '../harness/vendors/vendor-pack.ts';
import { streamEvents, streamOf } from '../harness/vendors/vendor-plans.ts';

const database = useDatabase();
const vendors = useServer(startVendorPack);
const postgres = useServer(() => startFaultyWire(database.url));
const redis = useServer(() => startFaultyWire(redisUrl()));
const openai = useServer(() => startFaultyWire(vendors.openai.url));
const gateway = useGateway(() => ({
  vendors,
  database,
  redisUrl: through(redis, redisUrl()),
  tables: tables({ timeouts: { stream_idle_seconds: 1 } }),
  env: {
    DATABASE_URL: through(postgres, database.url),
    GW_OPENAI_BASE_URL: `http://127.0.0.1:${openai.port}`,
  },
}));
let user: User;
let sent: Sent[];
let load: Load | undefined;

beforeEach(async () => {
  user = await registerWithKeys(gateway.url, ['openai', 'sarvam']);
  sent = await becomeKnown(gateway.url, user);
});

afterEach(async () => {
  await load?.stop();
  for (const wire of [postgres, redis, openai]) wire.heal();
});

async function chatTimes(count: number, headers: Readonly<Record<string, string>> = {}): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const one = await sendChat(gateway.url, user, { headers });
    expect(failures([one])).toEqual([]);
    times.push(one.tookMs);
    sent.push(one);
  }
  return times;
}

async function expectNothingLost(): Promise<void> {
  await untilRowsStored(gateway);
  await expectLedgersAgree({ databaseUrl: database.url, vendors, sent, users: [user] });
}

async function untilManaged(): Promise<void> {
  // Keys and logs have pools of their own, each with its mute connections to throw away.
  for (const path of ['/v1/keys', '/v1/logs?limit=1']) {
    await eventually(async () => (await user.client.get(path)).status === 200 || undefined, 15_000);
  }
}

describe('to Postgres', () => {
  test('half-open connections hold nobody for longer than 2 s and are thrown away', async () => {
    const usualMs = median(await chatTimes(20));
    load = startLoad({ url: gateway.url, users: [user] });
    postgres.silence();
    const unavailable = { status: 503, type: 'service_unavailable_error', code: 'database_unavailable' };
    const management = async () => expectError(await user.client.get('/v1/keys'), unavailable);
    expectWithin('management over a mute wire', await timed(management), 2_000);
    await eventually(async () => (await sendAndKeep()) < usualMs + 50 || undefined);
    const times = await chatTimes(20);
    expectWithin('chat beside a mute wire, beyond its usual time', median(times) - usualMs, 50);
    postgres.heal();
    expectWithin('management back', await timed(untilManaged), 5_000);
    sent.push(...(await load.stop()));
    expect(failures(sent)).toEqual([]);
    await expectNothingLost();
  });

  async function sendAndKeep(): Promise<number> {
    const one = await sendChat(gateway.url, user);
    sent.push(one);
    return one.tookMs;
  }

  test('300 ms of latency cost a chat at most one round trip', async () => {
    const usualMs = median(await chatTimes(20));
    const tripMs = 300;
    postgres.delay(tripMs / 2);
    load = startLoad({ url: gateway.url, users: [user] });
    const times = await chatTimes(20);
    measured(`chat with ${tripMs} ms to Postgres: ${median(times).toFixed(0)} ms`);
    expect(median(times)).toBeLessThan(usualMs + tripMs + 100);
    sent.push(...(await load.stop()));
    postgres.heal();
    expect(failures(sent)).toEqual([]);
    await expectNothingLost();
  });

  test('100 ms of latency refuse nobody a page, new connections included', async () => {
    postgres.delay(50);
    // Two of one user at a time: so many wait in line for a third of what they may.
    const pages = await Promise.all(Array.from({ length: 6 }, () => user.client.get('/v1/logs?limit=10')));
    expect(pages.map((page) => page.status)).toEqual(pages.map(() => 200));
    await chatTimes(5);
    postgres.heal();
    await expectNothingLost();
  });

  test('a locked table refuses callers within 2 s, however many, and the pool is whole afterwards', async () => {
    const locker = sql(
      database.url,
      `DO $$ BEGIN LOCK TABLE provider_keys IN ACCESS EXCLUSIVE MODE; PERFORM pg_sleep(3); END $$`,
    );
    await eventually(async () => (await user.client.get('/v1/keys')).status === 503 || undefined);
    const slowest = await timed(async () => {
      const answers = await Promise.all(Array.from({ length: 200 }, () => user.client.get('/v1/keys')));
      for (const answer of answers) {
        // The lock may end while a caller waits in line.
        if (answer.status === 200) continue;
        // Two of one user's queries are under way at a time; the others wait in line, and no longer than a query may.
        const inLine = { status: 429, type: 'rate_limit_error', code: 'too_many_queries' } as const;
        const away = { status: 503, type: 'service_unavailable_error' } as const;
        expectError(answer, answer.status === 429 ? inLine : away);
        expect(answer.headers['retry-after']).toMatch(/^\d+$/);
      }
    });
    expectWithin('slowest of 200 callers of a locked table', slowest, 2_000);
    await chatTimes(5);
    await locker;
    const answers = await Promise.all(Array.from({ length: 50 }, () => user.client.get('/v1/keys')));
    expect(answers.filter((answer) => answer.status !== 200)).toEqual([]);
    await expectNothingLost();
  });
});

describe('to Redis', () => {
  const cached = { 'x-gateway-cache': 'true' };

  async function untilCached(): Promise<void> {
    const body = { messages: [{ role: 'user', content: crypto.randomUUID() }] };
    await eventually(async () => {
      const one = await sendChat(gateway.url, user, { headers: cached, body });
      return one.text.includes('"cache_hit":true') || undefined;
    });
  }

  test.each([
    ['300 ms of latency', () => redis.delay(150)],
    ['half-open connections', () => redis.silence()],
  ])('%s cost a chat at most 50 ms, then nothing', async (name, begin) => {
    await untilCached();
    const usualMs = median(await chatTimes(20, cached));
    begin();
    const times = await chatTimes(20, cached);
    // Before the breaker opens each chat waits for the cache, so the median of the first five tells.
    expectWithin(
      `chat with ${name}, beyond its usual time, at first`,
      median(times.slice(0, 5)) - usualMs,
      50,
    );
    expectWithin(`chat with ${name}, beyond its usual time, later`, median(times.slice(10)) - usualMs, 20);
    redis.heal();
    await untilCached();
  });
});

describe('to a vendor', () => {
  test('a half-open connection in the middle of a stream is given up at the idle limit', async () => {
    vendors.openai.script((request) => streamOf(streamEvents(request).slice(0, 3), 'hang')(request));
    const reader = await user.client.stream(chatPath, chatBody({ stream: true }));
    expect(await reader.nextContent()).not.toBeNull();
    openai.silence();
    const tookMs = await timed(async () => {
      const stream = takeApart(await reader.rest());
      expect(stream.done).toBe(false);
      expect(stream.error).toMatchObject({ type: 'provider_error' });
    });
    expectWithin('half-open stream given up, beyond the idle limit', tookMs - 1_000, 200);
    expect(reader.end).toBe('complete');
  });

  test('a half-open connection before the answer leads to the next candidate at the timeout', async () => {
    openai.silence();
    const one = await sendChat(gateway.url, user, { headers: { 'x-gateway-timeout': '1' } });
    expect(one.text).toContain('"provider":"sarvam"');
    expectWithin('fallback from a half-open connection, beyond the timeout', one.tookMs - 1_000, 200);
  });

  test('300 calls that hang delay nobody who calls another', async () => {
    const usualMs = median(await chatTimes(10, { 'x-gateway-override-model': 'sarvam:sarvam-test' }));
    openai.silence();
    const leaving = new AbortController();
    const hanging = Array.from({ length: 300 }, () =>
      user.client.request('POST', chatPath, { body: chatBody(), signal: leaving.signal }).catch(() => 'left'),
    );
    await eventually(() => Promise.resolve(openai.openConnections() >= 250 || undefined));
    const times = await chatTimes(10, { 'x-gateway-override-model': 'sarvam:sarvam-test' });
    expectWithin('chat beside 300 that hang, beyond its usual time', median(times) - usualMs, 50);
    leaving.abort();
    await Promise.all(hanging);
  });
});
