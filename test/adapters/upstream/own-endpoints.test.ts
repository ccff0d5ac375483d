import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { HostLookup } from '../../../src/adapters/upstream/host-lookup.ts';
import type { NamedEndpoint } from '../../../src/adapters/upstream/own-endpoints.ts';
import { OwnEndpoints } from '../../../src/adapters/upstream/own-endpoints.ts';
import { decideOutbound, outboundPolicy } from '../../../src/core/net/outbound-policy.ts';

let own: OwnEndpoints;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  own.stop();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

type Zone = Record<string, readonly string[] | 'hangs' | undefined>;

/** Answers from `zone` as it is at the moment. */
function lookupIn(zone: Zone): HostLookup {
  return (host, _signal, callback) => {
    const found = zone[host];
    if (found === 'hangs') return;
    queueMicrotask(() => {
      if (found === undefined) callback(new Error('ENOTFOUND'), []);
      else
        callback(
          null,
          found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        );
    });
  };
}

async function started(names: readonly NamedEndpoint[], zone: Zone): Promise<void> {
  own = new OwnEndpoints(names, lookupIn(zone));
  const ready = own.start();
  await vi.advanceTimersByTimeAsync(3_000);
  await ready;
}

const verdict = (address: string, port: number) =>
  decideOutbound(address, port, own.guard(outboundPolicy('allow-private', [], [])), true);

const ofThisHost = Object.values(networkInterfaces()).flatMap((all = []) => all);
const mapped = ({ address, family }: { address: string; family: string }) =>
  family === 'IPv4' ? `::ffff:${address}` : address;

describe.each(['0.0.0.0', '::', '::ffff:0.0.0.0'])('a listener on %s', (wildcard) => {
  test.each(ofThisHost)('is one on $address of this host', async (address) => {
    await started([], {});
    own.addListener({ address: wildcard, port: 9090 });
    for (const text of [address.address, mapped(address)]) {
      // Link-local addresses are shut before it is asked whose they are.
      expect(verdict(text, 9090)).toMatch(/^(own-endpoint|link-local-address)$/);
      expect(verdict(text, 9091)).not.toBe('own-endpoint');
    }
  });
});

test('a listener on one address is none on the others', async () => {
  await started([], {});
  own.addListener({ address: '10.244.1.7', port: 8080 });
  expect(verdict('10.244.1.7', 8080)).toBe('own-endpoint');
  expect(verdict('::ffff:10.244.1.7', 8080)).toBe('own-endpoint');
  expect(verdict('127.0.0.1', 8080)).toBeNull();
});

describe('a store', () => {
  const names = [
    { host: 'db.example', port: 5432 },
    { host: 'pooler.example', port: 6432 },
    { host: 'cache.example', port: 6379 },
  ];

  test('is known by all its addresses', async () => {
    const zone = { 'db.example': ['10.0.0.1', 'fd00::1'], 'cache.example': ['10.0.0.2'] };
    await started(names, zone);
    expect(verdict('10.0.0.1', 5432)).toBe('own-endpoint');
    expect(verdict('fd00::1', 5432)).toBe('own-endpoint');
    expect(verdict('10.0.0.2', 6379)).toBe('own-endpoint');
    expect(verdict('10.0.0.2', 5432)).toBeNull();
  });

  test('that appears or moves later is known soon after', async () => {
    const zone: Zone = { 'db.example': ['10.0.0.1'] };
    await started(names, zone);
    zone['db.example'] = ['10.0.0.9'];
    zone['pooler.example'] = ['10.0.0.3'];
    await vi.advanceTimersByTimeAsync(20_000);
    expect(verdict('10.0.0.9', 5432)).toBe('own-endpoint');
    expect(verdict('10.0.0.3', 6432)).toBe('own-endpoint');
    expect(verdict('10.0.0.1', 5432)).toBeNull();
  });

  test('whose name resolves no more keeps its last addresses', async () => {
    const zone: Zone = { 'db.example': ['10.0.0.1'] };
    await started(names, zone);
    zone['db.example'] = undefined;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(verdict('10.0.0.1', 5432)).toBe('own-endpoint');
  });

  test('whose name hangs holds up the start for no more than three seconds', async () => {
    const zone: Zone = { 'db.example': 'hangs', 'pooler.example': 'hangs', 'cache.example': 'hangs' };
    await started(names, zone);
  });

  describe.each(names)('$host hangs', ({ host }) => {
    const others = names.filter((name) => name.host !== host);
    const address = (i: number): string => `10.0.0.${i + 1}`;

    test('and the others are known, now and when they move', async () => {
      const zone: Zone = { [host]: 'hangs' };
      for (const [i, other] of others.entries()) zone[other.host] = [address(i)];
      await started(names, zone);
      for (const [i, { port }] of others.entries()) expect(verdict(address(i), port)).toBe('own-endpoint');
      for (const [i, other] of others.entries()) zone[other.host] = [address(i + 10)];
      await vi.advanceTimersByTimeAsync(20_000);
      for (const [i, { port }] of others.entries())
        expect(verdict(address(i + 10), port)).toBe('own-endpoint');
    });
  });

  test('that made room for others while its name was looked up stays forgotten', async () => {
    const asked: Parameters<HostLookup>[2][] = [];
    own = new OwnEndpoints([], (_host, _signal, answer) => asked.push(answer));
    await own.start();
    own.addName({ host: 'first.example', port: 6379 });
    for (let number = 0; number < 256; number += 1) own.addName({ host: `10.1.0.${number}`, port: 6379 });
    asked[0]?.(null, [{ address: '10.0.0.7', family: 4 }]);
    expect(verdict('10.0.0.7', 6379)).toBeNull();
    expect(verdict('10.1.0.0', 6379)).toBe('own-endpoint');
  });

  test('that is found while a refresh is due does not keep it alive past the stop', async () => {
    const asked: string[] = [];
    own = new OwnEndpoints([{ host: 'db.example', port: 5432 }], (host, _signal, answer) => {
      asked.push(host);
      queueMicrotask(() => answer(null, [{ address: '10.0.0.1', family: 4 }]));
    });
    await own.start();
    own.addName({ host: 'cache.example', port: 6379 });
    await vi.advanceTimersByTimeAsync(0);
    own.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toEqual(['db.example', 'cache.example']);
  });

  test('whose name hangs is not asked again before it answers, and its late answer counts', async () => {
    const asked: Parameters<HostLookup>[2][] = [];
    own = new OwnEndpoints([{ host: 'db.example', port: 5432 }], (_host, _signal, answer) => {
      asked.push(answer);
    });
    const ready = own.start();
    await vi.advanceTimersByTimeAsync(60_000);
    await ready;
    expect(asked).toHaveLength(1);
    asked[0]?.(null, [{ address: '10.0.0.7', family: 4 }]);
    expect(verdict('10.0.0.7', 5432)).toBe('own-endpoint');
    await vi.advanceTimersByTimeAsync(15_000);
    expect(asked).toHaveLength(2);
  });
});
