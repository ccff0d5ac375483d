/** A connection is kept once the request is written, which TLS says a turn after a vendor that answers at once. */
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { AfterNextPoll } from '../../../src/adapters/upstream/after-next-poll.ts';
import type { OpenSocket } from '../../../src/adapters/upstream/connection.ts';
import { OriginPool } from '../../../src/adapters/upstream/origin-pool.ts';
import { ReadingTurns } from '../../../src/adapters/upstream/reading-turns.ts';
import { listen } from './local-server.ts';

const kept = { keepAliveMs: 60_000, longestKeepAliveMs: 60_000, longestLifeMs: 600_000, connectsAhead: true };

/** `lateness`: when a socket says that what was written has left it, counted from the answer. */
async function connectionsOfThreeCalls(lateness: 'at once' | 'a turn later' | 'never'): Promise<number> {
  const { port } = await listen(createServer((_request, response) => response.end('{}')));
  let connections = 0;
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
  const pool = new OriginPool(open, kept, () => performance.now(), new AfterNextPoll(), new ReadingTurns());
  const call = (): Promise<void> =>
    new Promise((resolve, reject) => {
      pool.take({
        isOver: false,
        onOpening: () => undefined,
        onConnectError: reject,
        onConnection: (connection) =>
          connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n', '', {
            onHead: () => undefined,
            onBody: () => undefined,
            onFault: reject,
            onComplete: resolve,
          }),
      });
    });
  for (let count = 0; count < 3; count += 1) {
    await call();
    // Two turns: what was said a turn later has been heard.
    for (let turn = 0; turn < 2; turn += 1) await new Promise(setImmediate);
  }
  await pool.destroy();
  return connections;
}

test.each([
  ['at once', 1],
  ['a turn later', 1],
  ['never', 3],
] as const)('written %s: three calls take %i connections', async (lateness, connections) => {
  expect(await connectionsOfThreeCalls(lateness)).toBe(connections);
});
