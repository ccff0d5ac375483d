/** Which connections are kept for the next call, and for how long. */
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { expect, test } from 'vitest';
import { AfterNextPoll } from '../../../src/adapters/upstream/after-next-poll.ts';
import type { OpenSocket } from '../../../src/adapters/upstream/connection.ts';
import type { PoolSettings } from '../../../src/adapters/upstream/connection-pool.ts';
import { userSettings, vendorSettings } from '../../../src/adapters/upstream/connection-pool.ts';
import { OriginPool } from '../../../src/adapters/upstream/origin-pool.ts';
import { ReadingTurns } from '../../../src/adapters/upstream/reading-turns.ts';
import { listen } from './local-server.ts';

const kept = {
  keepAliveMs: 60_000,
  longestKeepAliveMs: 60_000,
  longestLifeMs: 600_000,
  connectsAhead: true,
  readBytes: 65_536,
};

interface Calls {
  readonly settings?: PoolSettings;
  /** When a socket says that what was written has left it, counted from the answer. */
  readonly lateness?: 'at once' | 'a turn later' | 'never';
  /** Without a call before each. */
  readonly pauseMs?: number;
  /** Seconds of a `Keep-Alive` that the server sends. */
  readonly hint?: number | null;
}

function askOver(pool: OriginPool, onComplete: () => void, onFault: (why: unknown) => void): void {
  pool.take({
    isOver: false,
    onOpening: () => undefined,
    onConnectError: onFault,
    onConnection: (connection) =>
      connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n', '', {
        onHead: () => undefined,
        onBody: () => undefined,
        onFault,
        onComplete,
      }),
  });
}

async function connectionsOfThreeCalls(calls: Calls): Promise<number> {
  const { settings = kept, lateness = 'at once', pauseMs = 0, hint = null } = calls;
  const server = createServer((_request, response) => {
    if (hint !== null) response.setHeader('keep-alive', `timeout=${hint}`);
    response.end('{}');
  });
  server.keepAliveTimeout = 0; // it says none of its own
  const { port } = await listen(server);
  let [connections, nowMs] = [0, 0];
  const open: OpenSocket = ({ buffer, callback }, done) => {
    connections += 1;
    let unwritten = 0;
    const onAnswer = (bytes: number): boolean => {
      unwritten = lateness === 'at once' ? 0 : 1;
      if (lateness === 'a turn later')
        setImmediate(() => {
          unwritten = 0;
        });
      return callback(bytes);
    };
    const socket = connect({ port, host: '127.0.0.1', onread: { buffer, callback: onAnswer } });
    Object.defineProperty(socket, 'writableLength', { get: () => unwritten });
    socket.once('connect', () => done(null, socket, '127.0.0.1'));
    return () => socket.destroy();
  };
  const pool = new OriginPool(open, settings, () => nowMs, new AfterNextPoll(), new ReadingTurns());
  const call = (): Promise<void> => new Promise((resolve, reject) => askOver(pool, resolve, reject));
  for (let count = 0; count < 3; count += 1) {
    await call();
    // Two turns: what was said a turn later has been heard.
    for (let turn = 0; turn < 2; turn += 1) await new Promise(setImmediate);
    nowMs += pauseMs;
    pool.sweep(nowMs);
  }
  await pool.destroy();
  return connections;
}

// TLS says a turn after a vendor that answers at once that the request is written.
test.each([
  ['at once', 1],
  ['a turn later', 1],
  ['never', 3],
] as const)('written %s: three calls take %i connections', async (lateness, connections) => {
  expect(await connectionsOfThreeCalls({ lateness })).toBe(connections);
});

const secure = { whose: 'a vendor behind TLS', settings: vendorSettings('https://api.openai.com') };
const near = { whose: 'a vendor without TLS', settings: vendorSettings('http://vllm.models:8000') };
const user = { whose: "a user's server", settings: userSettings };

test.each([
  { ...secure, pauseMs: 45_000, hint: null, connections: 1 },
  { ...secure, pauseMs: 55_000, hint: null, connections: 3 },
  { ...secure, pauseMs: 2_500, hint: 5, connections: 1 },
  { ...secure, pauseMs: 3_500, hint: 5, connections: 3 },
  { ...secure, pauseMs: 65_000, hint: 120, connections: 1 },
  // Five minutes after it was made it is not used again.
  { ...secure, pauseMs: 145_000, hint: 600, connections: 1 },
  { ...secure, pauseMs: 155_000, hint: 600, connections: 2 },
  { ...near, pauseMs: 3_500, hint: null, connections: 1 },
  { ...near, pauseMs: 4_500, hint: null, connections: 3 },
  { ...user, pauseMs: 3_500, hint: null, connections: 1 },
  { ...user, pauseMs: 4_500, hint: null, connections: 3 },
  { ...user, pauseMs: 10_500, hint: 600, connections: 3 },
])('of $whose that tells $hint s, idle for $pauseMs ms: three calls take $connections', async (calls) => {
  expect(await connectionsOfThreeCalls(calls)).toBe(calls.connections);
});

test('a server that closes behind its answer, and said nothing of it, is sent the next call over another connection', async () => {
  const server = createTcpServer((socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
      // Apart from the answer: it lies in the kernel, behind what was read.
      setImmediate(() => socket.end());
    });
  });
  const { port } = await listen(server);
  let connections = 0;
  const open: OpenSocket = ({ buffer, callback }, done) => {
    connections += 1;
    const socket = connect({ port, host: '127.0.0.1', onread: { buffer, callback } });
    socket.once('connect', () => done(null, socket, '127.0.0.1'));
    return () => socket.destroy();
  };
  const pool = new OriginPool(open, kept, () => 0, new AfterNextPoll(), new ReadingTurns());
  const answers = new Promise<number>((resolve, reject) => {
    let left = 20;
    // In the same turn in which the one before was answered.
    const next = (): void => {
      left -= 1;
      if (left === 0) resolve(connections);
      else askOver(pool, next, reject);
    };
    askOver(pool, next, reject);
  });
  expect(await answers).toBe(20);
  await pool.destroy();
});
