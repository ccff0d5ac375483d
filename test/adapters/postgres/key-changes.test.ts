/** LISTEN that was accepted is not believed to work until what another session says has arrived. */
import { aroundEach, expect, onTestFinished, test } from 'vitest';
import { listenForKeyChanges } from '../../../src/adapters/postgres/key-changes.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';

const database = useDatabase(aroundEach);
const pool = usePool(database, 1, aroundEach);

type Notify = (channel: string, payload: string) => Promise<unknown>;

const speak: Notify = (channel, payload) => pool.query('SELECT pg_notify($1, $2)', [channel, payload]);
/** As a pooler that has given the LISTEN to somebody else's connection. */
const swallow: Notify = async () => undefined;
const fail: Notify = async () => {
  throw new Error('no connection to speak over');
};

/** What is told of a listener whose first proofs go these ways, and all further ones the last. */
function toldWith(ways: readonly Notify[]): { told: [boolean, string | null][]; spoken: () => number } {
  const told: [boolean, string | null][] = [];
  let spoken = 0;
  const changes = listenForKeyChanges({
    url: database.url,
    onChange: () => undefined,
    onRevoked: () => undefined,
    notify: (channel, payload) => {
      const way = ways[Math.min(spoken, ways.length - 1)] as Notify;
      spoken += 1;
      return way(channel, payload);
    },
    onState: (listening, reason) => told.push([listening, reason]),
    clock: { monotonicMs: () => performance.now() },
  });
  onTestFinished(() => changes.close());
  return { told, spoken: () => spoken };
}

const deaf = [false, expect.stringMatching(/^LISTEN was accepted, but no notification arrives/)];

test('what arrives proves it once', async () => {
  const { told, spoken } = toldWith([speak]);
  await expect.poll(() => told).toEqual([[true, null]]);
  expect(spoken()).toBe(1);
});

test('what does not arrive ends it, with the reason', async () => {
  const { told } = toldWith([swallow]);
  await expect.poll(() => told).toEqual([deaf]);
});

test('where nobody could speak at first it is asked for again: heard, it goes on', async () => {
  const { told, spoken } = toldWith([fail, fail, speak]);
  await expect.poll(spoken).toBe(3);
  expect(told).toEqual([[true, null]]);
});

test('where nobody could speak at first it is asked for again: not heard, it ends', async () => {
  const { told } = toldWith([fail, fail, swallow]);
  await expect.poll(() => told).toEqual([[true, null], deaf]);
});
