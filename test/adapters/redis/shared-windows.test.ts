/** Limits that all replicas share: exact while Redis answers, silent (null) at once when it does not. */
import { describe, expect, test } from 'vitest';
import { SharedWindows } from '../../../src/adapters/redis/shared-windows.ts';
import { expectInTime } from '../../harness/measure/fault-bounds.ts';
import { useRedis } from '../../harness/servers/use-redis.ts';

const windowMs = 60_000;
const { server, direct, connect } = useRedis();

async function replica(commandTimeoutMs?: number, duration = windowMs): Promise<SharedWindows> {
  return new SharedWindows(await connect(commandTimeoutMs), 'registrations', duration);
}

const ofClient = (limit: number, name = '203.0.113.7') => ({ name, limit });
const ofAll = (limit: number) => ({ name: 'all', limit });

describe('a window', () => {
  test('takes exactly as many calls as its limit, from however many replicas at once', async () => {
    const replicas = await Promise.all([replica(), replica(), replica(), replica()]);
    const waits = await Promise.all(
      Array.from({ length: 100 }, (_, index) => replicas[index % 4]?.take([ofClient(17)])),
    );
    expect(waits.filter((wait) => wait === 0)).toHaveLength(17);
    for (const wait of waits) expect(wait).toBeLessThanOrEqual(windowMs);
    expect(waits).not.toContain(null);
  });

  test('that is full keeps a call from counting in the next one', async () => {
    const windows = await replica();
    for (let index = 0; index < 50; index += 1) await windows.take([ofClient(2), ofAll(5)]);
    expect(await windows.take([ofClient(2, '198.51.100.1'), ofAll(5)])).toBe(0);
    expect(await windows.take([ofClient(2, '198.51.100.2'), ofAll(5)])).toBe(0);
    expect(await windows.take([ofClient(2, '198.51.100.3'), ofAll(5)])).toBe(0);
    expect(await windows.take([ofClient(2, '198.51.100.4'), ofAll(5)])).toBeGreaterThan(0);
  });

  test('ends by itself, and begins anew with the next call', async () => {
    const windows = await replica(undefined, 200);
    expect(await windows.take([ofClient(1)])).toBe(0);
    expect(await windows.take([ofClient(1)])).toBeGreaterThan(0);
    await expect.poll(() => direct.exists('gw:limit:{registrations}:203.0.113.7')).toBe(0);
    expect(await windows.take([ofClient(1)])).toBe(0);
  });

  test('leaves nothing behind without an end, not even an entry that lost it', async () => {
    const windows = await replica();
    await direct.set('gw:limit:{registrations}:203.0.113.7', '3');
    await windows.take([ofClient(10), ofAll(10)]);
    const names = await direct.keys('*');
    expect(names.sort()).toEqual(['gw:limit:{registrations}:203.0.113.7', 'gw:limit:{registrations}:all']);
    for (const name of names) expect(await direct.pttl(name)).toBeGreaterThan(0);
  });
});

describe('nothing is said', () => {
  test('of an entry that is no number', async () => {
    const windows = await replica();
    await direct.lpush('gw:limit:{registrations}:all', 'x');
    expect(await windows.take([ofAll(1)])).toBeNull();
    expect(await windows.take([ofClient(1)])).toBe(0);
  });

  test('by a server that hangs: within the limit of one command, and then at once', async () => {
    const windows = await replica(40);
    server.stopSignal();
    try {
      const began = performance.now();
      for (let index = 0; index < 200; index += 1) expect(await windows.take([ofAll(1)])).toBeNull();
      // Five waits open the breaker; then one call a second waits.
      expectInTime(performance.now() - began, 1_000);
    } finally {
      server.continueSignal();
    }
    await expect.poll(() => windows.take([ofAll(1000)])).toBe(0);
  });
});
