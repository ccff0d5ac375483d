/** Connections whose calls have left are made to their end, for the next call, but not without bound. */
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { AfterNextPoll } from '../../../src/adapters/upstream/after-next-poll.ts';
import type { Connection, OpenSocket } from '../../../src/adapters/upstream/connection.ts';
import { OriginPool } from '../../../src/adapters/upstream/origin-pool.ts';
import { ReadingTurns } from '../../../src/adapters/upstream/reading-turns.ts';

const calls = 500;
const most = 32;

/** An origin that says nothing until it is told to, and how many sockets to it are being made. */
function silentOrigin(connectsAhead: boolean) {
  const opening = new Set<Parameters<OpenSocket>[1]>();
  const open: OpenSocket = (_read, done) => {
    opening.add(done);
    return () => void opening.delete(done);
  };
  const kept = { keepAliveMs: 60_000, longestKeepAliveMs: 60_000, longestLifeMs: 600_000 };
  const pool = new OriginPool(
    open,
    { ...kept, connectsAhead, readBytes: 65_536 },
    () => 1,
    new AfterNextPoll(),
    new ReadingTurns(),
  );
  const callAndLeave = (): void => {
    let made: Connection | null = null;
    pool.take({
      isOver: false,
      onOpening: (connection) => {
        made = connection;
      },
      onConnection: () => expect.unreachable(),
      onConnectError: () => expect.unreachable(),
    });
    (made as Connection | null)?.abandon(false);
  };
  const answer = (): void => {
    const [done] = opening;
    if (done === undefined) throw new Error('nothing is being opened');
    opening.delete(done);
    done(null, new Socket(), '127.0.0.1');
  };
  return { pool, opening, callAndLeave, answer };
}

test.each([
  ["a vendor's", true, most],
  ["a user's server, none", false, 0],
])('of calls that left while connecting hangs: %s', async (_, connectsAhead, kept) => {
  const { pool, opening, callAndLeave } = silentOrigin(connectsAhead);
  for (let call = 0; call < calls; call += 1) callAndLeave();
  expect(opening.size).toBe(kept);
  // Nobody waits for them.
  expect(pool.stats.pending).toBe(0);
  await pool.destroy();
  expect(opening.size).toBe(0);
});

test('one that is open makes room for another', async () => {
  const { pool, opening, callAndLeave, answer } = silentOrigin(true);
  for (let call = 0; call < calls; call += 1) callAndLeave();
  answer();
  expect(pool.stats).toMatchObject({ connected: 1, running: 0 });
  expect(opening.size).toBe(most - 1);
  pool.closeOldestIdle();
  callAndLeave();
  callAndLeave();
  expect(opening.size).toBe(most);
  await pool.destroy();
});
