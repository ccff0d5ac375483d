/** Limits of users over replicas: exact while Redis answers, from there on alone when it does not. */
import { once } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RedisConnection } from '../../../src/adapters/redis/connection.ts';
import { RedisLimits } from '../../../src/adapters/redis/shared-limits.ts';
import { limitNames, limitTable } from '../../../src/core/limits/limit-table.ts';
import { minuteMs, streamLeaseMs } from '../../../src/core/limits/minute.ts';
import type { Limits } from '../../../src/core/limits/user-limits.ts';
import { compileDefaults } from '../../../src/core/limits/user-limits.ts';
import type { Decision } from '../../../src/limits/user-minutes.ts';
import { UserMinutes } from '../../../src/limits/user-minutes.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { useRedis } from '../../harness/servers/use-redis.ts';

const { server, direct, connect } = useRedis();

interface Replica {
  readonly minutes: UserMinutes;
  readonly redis: RedisConnection;
  readonly decided: string[];
  /** In the words of Redis. */
  readonly refusals: string[];
}

let made = 0;

async function replica(commandTimeoutMs?: number): Promise<Replica> {
  const redis = await connect(commandTimeoutMs);
  made += 1;
  const decided: string[] = [];
  const refusals: string[] = [];
  const minutes = new UserMinutes({
    monotonicMs: () => performance.now(),
    store: new RedisLimits(redis, `replica-${made}`, (words) => refusals.push(words)),
    onDecided: (by) => decided.push(by),
  });
  onTestFinished(() => minutes.close());
  return { minutes, redis, decided, refusals };
}

const limits = (of: Parameters<typeof compileDefaults>[0]): Limits => compileDefaults(of) as Limits;
const ask = async ({ minutes }: Replica, of: Limits, isStream = false, user = 'ada'): Promise<Decision> =>
  minutes.admit(user, of, isStream);
const refusedBy = (decision: Decision): string | null =>
  'refusal' in decision ? decision.refusal.limit : null;

/** Ends it as the gate does. */
function end({ minutes }: Replica, decision: Decision, wasStream = false): void {
  if ('refusal' in decision) throw new Error('it was refused');
  if (wasStream) minutes.endStream(decision.minute);
  decision.minute.underWay -= 1;
}

test.each(limitNames.filter((name) => limitTable[name].kind === 'minute'))(
  '%s is one for all replicas, whichever of them counted',
  async (name) => {
    const [here, there] = [await replica(), await replica()];
    const of = limits({ [name]: 1 });
    expect(refusedBy(await ask(here, of, true))).toBe(null);
    here.minutes.spend('ada', 1);
    await eventually(
      async () => refusedBy(await ask(there, of, true)) === limitTable[name].refusal || undefined,
    );
  },
);

describe('requests', () => {
  test('are admitted exactly as often as the limit says, from however many replicas at once', async () => {
    const replicas = await Promise.all([replica(), replica(), replica(), replica()]);
    const of = limits({ requests_per_minute: 17 });
    const all = await Promise.all(
      Array.from({ length: 200 }, (_, index) => ask(replicas[index % 4] as Replica, of)),
    );
    expect(all.map(refusedBy).filter((limit) => limit === null)).toHaveLength(17);
    const last = all.findLast((decision) => refusedBy(decision) === 'requests');
    expect(last?.counts).toMatchObject({ requests: 17 });
    expect(last?.counts.leftMs).toBeLessThanOrEqual(minuteMs);
    // What is known to be full is refused here, before anybody is asked or a body is read.
    for (const { minutes } of replicas) expect(minutes.known('ada', of)?.refusal.limit).toBe('requests');
    expect(refusedBy(await ask(replicas[0] as Replica, of, false, 'bob'))).toBe(null);
  });

  test('that a full Redis did not take are told once it has room', async () => {
    const [here, there] = [await replica(), await replica()];
    const of = limits({ requests_per_minute: 6, tokens_per_minute: 100 });
    onTestFinished(async () => {
      await direct.config('SET', 'maxmemory', '0');
    });
    await direct.config('SET', 'maxmemory', '1');
    for (let count = 0; count < 5; count += 1) end(here, await ask(here, of));
    here.minutes.spend('ada', 40);
    expect(here.decided).toEqual(Array(5).fill('unsent'));
    expect(here.refusals).toEqual(Array(5).fill(expect.stringMatching(/^OOM /)));
    // It tells what it has, is refused again, and keeps it.
    here.minutes.close();
    await here.redis.ping();
    await direct.config('SET', 'maxmemory', '0');
    end(here, await ask(here, of));
    expect(refusedBy(await ask(there, of))).toBe('requests');
    here.minutes.spend('ada', 60);
    here.minutes.close();
    const raised = limits({ requests_per_minute: 60, tokens_per_minute: 100 });
    await eventually(async () => refusedBy(await ask(there, raised)) === 'tokens' || undefined);
  });

  test('that are refused count nothing', async () => {
    const one = await replica();
    const of = limits({ requests_per_minute: 1 });
    await ask(one, of);
    for (let at = 0; at < 5; at += 1) expect(refusedBy(await ask(one, of))).toBe('requests');
    expect(await direct.hget('gw:user:{ada}:minute', 'requests')).toBe('1');
  });
});

describe('tokens', () => {
  test('that are settled on one replica refuse on the other, and count once', async () => {
    const [here, there] = [await replica(), await replica()];
    const of = limits({ tokens_per_minute: 100 });
    end(here, await ask(here, of));
    here.minutes.spend('ada', 60);
    here.minutes.spend('ada', 40);
    await eventually(
      async () => (await direct.hget('gw:user:{ada}:minute', 'tokens')) === '100' || undefined,
    );
    expect(refusedBy(await ask(there, of))).toBe('tokens');
    expect(refusedBy(await ask(here, of))).toBe('tokens');
    expect(await direct.hget('gw:user:{ada}:minute', 'tokens')).toBe('100');
  });
});

describe('streams', () => {
  const of = limits({ streams: 2 });

  test('hold places over all replicas until they end', async () => {
    const [here, there] = [await replica(), await replica()];
    const first = await ask(here, of, true);
    expect(refusedBy(await ask(there, of, true))).toBe(null);
    expect(refusedBy(await ask(here, of, true))).toBe('streams');
    expect(refusedBy(await ask(there, of, true))).toBe('streams');
    expect(refusedBy(await ask(there, of, false))).toBe(null);
    end(here, first, true);
    await eventually(async () => refusedBy(await ask(there, of, true)) === null || undefined);
    expect(refusedBy(await ask(here, of, true))).toBe('streams');
  });

  test('of a replica that is gone hold them no longer than its lease', async () => {
    const one = await replica();
    const nowMs = Number((await direct.time())[0]) * 1000;
    await direct.hset('gw:user:{ada}:streams', { gone: `2:${nowMs - 1}`, alive: `1:${nowMs + 60_000}` });
    expect(refusedBy(await ask(one, of, true))).toBe(null);
    expect(refusedBy(await ask(one, of, true))).toBe('streams');
    const held = await direct.hgetall('gw:user:{ada}:streams');
    expect(Object.keys(held).sort()).toEqual(['alive', expect.stringMatching(/^replica-/)]);
    const lease = Number(
      Object.values(held)
        .find((value) => value.startsWith('1:') && value !== held['alive'])
        ?.slice(2),
    );
    expect(lease).toBeGreaterThan(nowMs);
    expect(lease).toBeLessThanOrEqual(Number((await direct.time())[0]) * 1000 + 1000 + streamLeaseMs);
  });
});

describe('without Redis', () => {
  test('a replica goes on from where all stood, and tells what it counted when Redis is back', async () => {
    const [here, there] = [await replica(), await replica()];
    const of = limits({ requests_per_minute: 10 });
    for (let at = 0; at < 3; at += 1) await ask(there, of);
    await ask(here, of);
    here.redis.disconnect();
    await once(here.redis, 'end');
    const alone = await Promise.all(Array.from({ length: 20 }, () => ask(here, of)));
    expect(alone.map(refusedBy).filter((limit) => limit === null)).toHaveLength(6);
    expect(here.decided.at(-1)).toBe('unsent');
    await here.redis.connect();
    here.minutes.close();
    await eventually(
      async () => (await direct.hget('gw:user:{ada}:minute', 'requests')) === '10' || undefined,
    );
    expect(refusedBy(await ask(there, of))).toBe('requests');
  });

  test('that hangs, five requests wait for it and the next ones do not', async () => {
    const one = await replica(40);
    server.stopSignal();
    try {
      const of = limits({ requests_per_minute: 500 });
      for (let at = 0; at < 200; at += 1) expect(refusedBy(await ask(one, of))).toBe(null);
    } finally {
      server.continueSignal();
    }
    expect(one.decided.slice(0, 6)).toEqual([...Array.from({ length: 5 }, () => 'unanswered'), 'unsent']);
    expect(one.decided.filter((by) => by === 'unanswered').length).toBeLessThan(10);
  });
});
