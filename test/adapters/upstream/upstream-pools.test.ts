import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { ConnectionPool } from '../../../src/adapters/upstream/connection-pool.ts';
import { openFilesLimit } from '../../../src/adapters/upstream/open-files.ts';
import type { UpstreamHttp } from '../../../src/adapters/upstream/upstream-http-port.ts';
import type { PoolLease } from '../../../src/adapters/upstream/upstream-pools.ts';
import { UpstreamPools } from '../../../src/adapters/upstream/upstream-pools.ts';
import type { UserSocketLimits } from '../../../src/adapters/upstream/user-socket-limits.ts';
import { userSocketLimitsWithin } from '../../../src/adapters/upstream/user-socket-limits.ts';
import { outboundPolicy } from '../../../src/core/net/outbound-policy.ts';
import { createUpstream, testsUndici } from '../../harness/gateway/upstream-client.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { expectInTime } from '../../harness/measure/fault-bounds.ts';
import type { LocalServer } from './local-server.ts';
import { callTo, listen, ofUser } from './local-server.ts';

/** What servers that users name may take of our sockets. */

afterEach(() => {
  vi.useRealTimers();
});

interface Server extends LocalServer {
  /** Requests that wait for `answerAll`. */
  readonly waiting: ServerResponse[];
  answerAll(): void;
}

async function start(keepAlive = 'timeout=600'): Promise<Server> {
  const waiting: ServerResponse[] = [];
  const server = createServer((request, response) => {
    request.resume();
    waiting.push(response);
  });
  server.keepAliveTimeout = 600_000;
  const answerAll = (): void => {
    for (const response of waiting.splice(0)) response.setHeader('keep-alive', keepAlive).end('{}');
  };
  return { ...(await listen(server)), waiting, answerAll };
}

function open(limits: UserSocketLimits): UpstreamHttp {
  const upstream = createUpstream(outboundPolicy('allow-private', [], []), limits);
  onTestFinished(() => upstream.close());
  return upstream;
}

/** Resolves with 'end' or the kind of the failure. */
function send(upstream: UpstreamHttp, origin: string, userId = 'u', userAddress = true): Promise<string> {
  return new Promise((resolve) => {
    upstream.send(callTo(origin, userAddress ? ofUser(userId) : { userId }), {
      onHead: () => undefined,
      onData: () => undefined,
      onEnd: () => resolve('end'),
      onFailure: ({ kind }) => resolve(kind),
    });
  });
}

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

const until = (holds: () => boolean): Promise<true> => eventually(async () => holds() || undefined);

const roomy: UserSocketLimits = { sockets: 100, perUser: 100 };

describe("a user's server", () => {
  test('that several share serves each of them, however many calls of another one hang there', async () => {
    const server = await start();
    const upstream = open({ sockets: 8, perUser: 8 });
    const hanging = times(3, () => send(upstream, server.origin, 'greedy'));
    await until(() => server.waiting.length === 3);
    expect(await send(upstream, server.origin, 'greedy')).toBe('no-room');
    const hung = server.waiting.splice(0);
    for (const user of ['a', 'b', 'c']) {
      const call = send(upstream, server.origin, user);
      await until(() => server.waiting.length === 1);
      server.answerAll();
      expect(await call).toBe('end');
    }
    server.waiting.push(...hung);
    server.answerAll();
    expect(await Promise.all(hanging)).toEqual(times(3, () => 'end'));
  });

  test('does not decide how long our idle sockets stay; a vendor may', async () => {
    const [own, vendor] = [await start(), await start()];
    const upstream = open(roomy);
    const calls = [send(upstream, own.origin), send(upstream, vendor.origin, 'u', false)];
    await until(() => own.waiting.length + vendor.waiting.length === 2);
    const [socket] = own.open;
    const begun = performance.now();
    own.answerAll();
    vendor.answerAll();
    await Promise.all(calls);
    await once(socket as Socket, 'close');
    expectInTime(performance.now() - begun, 4_000);
    expect(vendor.open.size).toBe(1);
  });
});

test('a user has so many calls under way, to whichever servers, and nobody else is the worse for it', async () => {
  const servers = [await start(), await start()];
  const upstream = open({ sockets: 100, perUser: 4 });
  const origin = (i: number): string => (servers[i % 2] as Server).origin;
  const calls = times(4, (i) => send(upstream, origin(i), 'greedy'));
  expect(await send(upstream, origin(0), 'greedy')).toBe('no-room');
  calls.push(send(upstream, origin(0), 'other'));
  await until(() => servers.reduce((sum, { waiting }) => sum + waiting.length, 0) === 5);
  // Vendors are not counted.
  calls.push(send(upstream, origin(1), 'greedy', false));
  await until(() => servers.reduce((sum, { waiting }) => sum + waiting.length, 0) === 6);
  for (const server of servers) server.answerAll();
  expect(await Promise.all(calls)).toEqual(times(6, () => 'end'));
  const again = send(upstream, origin(0), 'greedy');
  await until(() => servers[0]?.waiting.length === 1);
  servers[0]?.answerAll();
  expect(await again).toBe('end');
});

describe('all servers of users together', () => {
  const limits = { ...roomy, sockets: 8 };

  test('have so many sockets, whoever names them; idle ones make room', async () => {
    const servers = await Promise.all(times(20, () => start()));
    const upstream = open(limits);
    const openSockets = (): number => servers.reduce((sum, { open: sockets }) => sum + sockets.size, 0);
    for (const server of servers) {
      const call = send(upstream, server.origin);
      await until(() => server.waiting.length === 1);
      expect(openSockets()).toBeLessThanOrEqual(limits.sockets);
      server.answerAll();
      expect(await call).toBe('end');
    }
  });

  test('have idle ones closed one by one, also those of a server with calls, and those idle the longest first', async () => {
    const [first, second, third] = await Promise.all([start(), start(), start()]);
    const upstream = open(limits);
    const hanging = send(upstream, first.origin, 'a');
    await until(() => first.waiting.length === 1);
    const hung = first.waiting.splice(0);
    const idle = async (server: Server, count: number): Promise<void> => {
      const calls = times(count, (i) => send(upstream, server.origin, `u${i}`));
      await until(() => server.waiting.length === count);
      server.answerAll();
      await Promise.all(calls);
    };
    await idle(first, 3);
    await idle(second, 4);
    expect([first.open.size, second.open.size]).toEqual([4, 4]);
    await idle(third, 2);
    if (testsUndici()) {
      // It can only close all of a server's, and of a server without calls.
      await until(() => second.open.size === 0);
    } else {
      await until(() => first.open.size === 2);
      expect(second.open.size).toBe(4);
    }
    first.waiting.push(...hung);
    first.answerAll();
    expect(await hanging).toBe('end');
  });

  test('and those in use are not taken away: the next one has no room, a vendor has', async () => {
    const servers = await Promise.all(times(9, () => start()));
    const upstream = open(limits);
    const calls = servers.slice(0, 8).map(({ origin }, i) => send(upstream, origin, `u${i}`));
    await until(() => servers.every(({ waiting }, i) => i === 8 || waiting.length === 1));
    const last = servers[8] as Server;
    expect(await send(upstream, last.origin)).toBe('no-room');
    const order: string[] = [];
    await new Promise<void>((resolve) => {
      upstream.send(callTo(last.origin, ofUser('u')), {
        onHead: () => undefined,
        onData: () => undefined,
        onEnd: resolve,
        onFailure: ({ kind }) => {
          order.push(kind);
          resolve();
        },
      });
      order.push('has its control');
    });
    expect(order).toEqual(['has its control', 'no-room']);
    calls.push(send(upstream, last.origin, 'u', false));
    await until(() => last.waiting.length === 1);
    for (const server of servers) server.answerAll();
    expect(await Promise.all(calls)).toEqual(times(9, () => 'end'));
  });

  test('are shared out: users whose calls hang leave others theirs', async () => {
    const server = await start();
    const upstream = open({ sockets: 16, perUser: 8 });
    const hanging: Promise<string>[] = [];
    for (const user of ['a', 'b', 'c']) {
      hanging.push(...times(10, () => send(upstream, server.origin, user)));
    }
    await until(() => server.waiting.length === 11);
    const mine = send(upstream, server.origin, 'last');
    await until(() => server.waiting.length === 12);
    server.answerAll();
    expect(await mine).toBe('end');
    const ends = await Promise.all(hanging);
    expect(ends.filter((end) => end === 'end')).toHaveLength(11);
    expect(ends.filter((end) => end === 'no-room')).toHaveLength(19);
  });

  test('are not filled by a dozen users whose servers never answer', async () => {
    const [silent, quick] = [await start(), await start()];
    const upstream = open({ sockets: 64, perUser: 16 });
    const hanging: Promise<string>[] = [];
    for (let user = 0; user < 12; user += 1)
      hanging.push(...times(16, () => send(upstream, silent.origin, `hog ${user}`)));
    let ended = 0;
    // Whichever way: where the machine is busy with others, a connection of so many may come too late.
    for (const call of hanging) void call.then(() => (ended += 1));
    await until(() => ended + silent.waiting.length === hanging.length);
    const others = times(8, (index) => send(upstream, quick.origin, `other ${index}`));
    await until(() => quick.waiting.length === others.length);
    quick.answerAll();
    expect(await Promise.all(others)).toEqual(times(8, () => 'end'));
    silent.answerAll();
    await Promise.all(hanging);
  });

  test('give their pools back when nobody uses them', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const server = await start();
    const upstream = open(limits);
    const call = send(upstream, server.origin);
    await until(() => server.waiting.length === 1);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(upstream.connections().get('self_hosted')).toMatchObject({ active: 1 });
    server.answerAll();
    expect(await call).toBe('end');
    const [socket] = server.open;
    const closed = once(socket as Socket, 'close');
    await vi.advanceTimersByTimeAsync(30_000);
    expect(upstream.connections().has('self_hosted')).toBe(false);
    await closed;
  });
});

/** A pool that only remembers what became of it. */
class TrackedPool implements ConnectionPool {
  readonly stats = { connected: 0, running: 0, pending: 0 };
  readonly idleSinceMs = Number.POSITIVE_INFINITY;
  destroyed = false;
  closeOldestIdle(): void {}
  async close(): Promise<void> {}
  async destroy(): Promise<void> {
    this.destroyed = true;
  }
}

test('a server in use keeps its pool, however many others are named', async () => {
  const limits = { sockets: 10_000, perUser: 2 };
  const pools = new UpstreamPools(() => new TrackedPool(), outboundPolicy('allow-private', [], []), limits);
  onTestFinished(() => pools.close());
  const take = (origin: string): PoolLease<TrackedPool> | null => pools.take(callTo(origin, ofUser('u')));
  const lease = take('http://busy.example');
  expect(lease).not.toBeNull();
  for (let i = 0; i < 1_100; i++) take(`http://other-${i}.example`)?.release();
  const open = [...pools.entries()];
  expect(open.filter(([, pool]) => pool === lease?.pool)).toEqual([['self_hosted', lease?.pool]]);
  // The rest is bounded.
  expect(open).toHaveLength(1_000);
  await pools.close();
  expect(lease?.pool.destroyed).toBe(true);
});

test.each<[openFiles: number, heapMiB: number, expected: UserSocketLimits]>([
  [1024, 4096, { sockets: 256, perUser: 64 }],
  [65_536, 4096, { sockets: 2048, perUser: 512 }],
  [Number.POSITIVE_INFINITY, 4096, { sockets: 2048, perUser: 512 }],
  [Number.POSITIVE_INFINITY, 307, { sockets: 1047, perUser: 261 }],
  [Number.POSITIVE_INFINITY, 76, { sockets: 259, perUser: 64 }],
])('of %i open files and %i MiB of heap, users get a part', (openFiles, heapMiB, expected) => {
  expect(userSocketLimitsWithin(openFiles, heapMiB * 1024 * 1024)).toEqual(expected);
});

test('the limit of open files is read where the system tells it', () => {
  expect(openFilesLimit()).toBeGreaterThanOrEqual(1024);
  expect(openFilesLimit('/does/not/exist')).toBe(1024);
});
