/** Addresses of either family, and names whose addresses change: the connection of before is not used for long. */
import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { AfterNextPoll } from '../../../src/adapters/upstream/after-next-poll.ts';
import type { OpenSocket } from '../../../src/adapters/upstream/connection.ts';
import { createConnector } from '../../../src/adapters/upstream/guarded-connector.ts';
import type { HostLookup } from '../../../src/adapters/upstream/host-lookup.ts';
import { OriginPool } from '../../../src/adapters/upstream/origin-pool.ts';
import { ReadingTurns } from '../../../src/adapters/upstream/reading-turns.ts';
import { ActiveCall } from '../../../src/adapters/upstream/upstream-call.ts';
import { outboundPolicy } from '../../../src/core/net/outbound-policy.ts';
import type { LocalServer } from './local-server.ts';
import { listen } from './local-server.ts';

const longestLifeMs = 300_000;
const policy = outboundPolicy('allow-private', [], []);

/** A server that says which address it is; port 0 takes a free one. */
function startOn(address: string, port = 0): Promise<LocalServer> {
  const server = createServer((_request, response) => response.end(address));
  server.keepAliveTimeout = 600_000;
  return listen(server, address, port);
}

/** The pool of one name, whose addresses and whose clock the test moves. */
function poolOf(port: number, userAddress: boolean) {
  const world = { nowMs: 1_000_000, addresses: [] as string[] };
  const lookup: HostLookup = (_host, _signal, callback) =>
    callback(
      null,
      world.addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  const connector = createConnector(policy, { userAddress, connectTimeoutMs: 30_000, lookup });
  const target = { hostname: 'moving.example', protocol: 'http:', port: String(port) };
  const open: OpenSocket = (read, done) =>
    connector({ ...target, onread: read }, (error, socket) => done(error, socket, null));
  const kept = { keepAliveMs: 600_000, longestKeepAliveMs: 600_000, longestLifeMs };
  const pool = new OriginPool(
    open,
    { ...kept, connectsAhead: true, readBytes: 65_536 },
    () => world.nowMs,
    new AfterNextPoll(),
    new ReadingTurns(),
  );
  onTestFinished(() => pool.destroy());
  const ask = async (): Promise<string> => {
    const parts: Buffer[] = [];
    await new Promise<void>((resolve, reject) => {
      const head = 'GET / HTTP/1.1\r\nhost: moving.example\r\n\r\n';
      const listener = {
        onHead: () => undefined,
        onData: (part: Buffer) => void parts.push(part),
        onEnd: resolve,
        onFailure: ({ message }: { readonly message: string }) => reject(new Error(message)),
      };
      pool.take(new ActiveCall(head, { body: null, userAddress }, listener, null));
    });
    return Buffer.concat(parts).toString();
  };
  return { world, ask };
}

test.each([true, false])(
  'a name that moved is followed, though its server is never idle (user: %s)',
  async (user) => {
    const { port } = await startOn('127.0.0.1');
    await startOn('127.0.0.2', port);
    const { world, ask } = poolOf(port, user);
    world.addresses = ['127.0.0.1'];
    expect(await ask()).toBe('127.0.0.1');
    world.addresses = ['127.0.0.2'];
    const seen: string[] = [];
    for (let minute = 1; minute <= 6; minute += 1) {
      world.nowMs += 60_000;
      seen.push(await ask());
    }
    // The connection of before serves out its five minutes.
    expect(seen).toEqual([...Array(5).fill('127.0.0.1'), '127.0.0.2']);
  },
);

test('a name whose old server is gone is found at its new address at once', async () => {
  const { port, close } = await startOn('127.0.0.1');
  const { world, ask } = poolOf(port, true);
  world.addresses = ['127.0.0.1'];
  expect(await ask()).toBe('127.0.0.1');
  close();
  await startOn('127.0.0.2', port);
  world.addresses = ['127.0.0.2'];
  // The end of the connection has to arrive first.
  await expect.poll(() => ask().catch(() => '')).toBe('127.0.0.2');
});

test.each([true, false])('a name with AAAA records only is reached (user: %s)', async (user) => {
  const { port } = await startOn('::1');
  const { world, ask } = poolOf(port, user);
  world.addresses = ['::1'];
  expect(await ask()).toBe('::1');
});
