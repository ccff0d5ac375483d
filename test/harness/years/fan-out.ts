import { setTimeout as delay } from 'node:timers/promises';
import type { KeyChanges } from '../../../src/adapters/postgres/key-changes.ts';
import { listenForKeyChanges } from '../../../src/adapters/postgres/key-changes.ts';
import { createPool } from '../../../src/adapters/postgres/pool.ts';
import { keyChangesChannel } from '../../../src/adapters/postgres/provider-keys.ts';
import { childrenMicroseconds } from '../bench/processes.ts';

/** What a change of a key costs until every replica has heard of it: as many listeners as replicas, each with its pings. */

const changes = 200;
const pauseMs = 20;
/** How long listeners are left alone with their pings. */
const idleMs = 10_000;

export interface FanOut {
  readonly listeners: number;
  /** Of the listener that heard of a change last, in ms. */
  readonly slowest: { readonly p50: number; readonly p99: number };
  readonly missed: number;
  /** Cores of Postgres that the pings take. */
  readonly idleCores: number;
}

export async function measureFanOut(
  databaseUrl: string,
  postgresPid: number,
  listeners: number,
): Promise<FanOut> {
  const pool = createPool(databaseUrl, 1);
  const clock = { monotonicMs: () => performance.now() };
  const notify = (channel: string, payload: string) =>
    pool.query('SELECT pg_notify($1, $2)', [channel, payload]);
  let left = 0;
  let heardAll: () => void = () => {};
  const onChange = () => {
    left -= 1;
    if (left === 0) heardAll();
  };
  const all: KeyChanges[] = [];
  for (let number = 0; number < listeners; number += 1) {
    await new Promise<void>((resolve) => {
      const onState = (listening: boolean) => listening && resolve();
      const heard = { onChange, onRevoked: () => {}, onState };
      all.push(listenForKeyChanges({ url: databaseUrl, notify, ...heard, clock }));
    });
  }
  const [cpuBefore, beginMs] = [childrenMicroseconds(postgresPid), performance.now()];
  await delay(idleMs);
  const idleCores = (childrenMicroseconds(postgresPid) - cpuBefore) / 1_000 / (performance.now() - beginMs);
  const slowest: number[] = [];
  let missed = 0;
  for (let change = 0; change < changes; change += 1) {
    left = listeners;
    const heard = new Promise<void>((resolve) => {
      heardAll = resolve;
    });
    const sentMs = performance.now();
    await pool.query('SELECT pg_notify($1, $2)', [keyChangesChannel, `user-${change}`]);
    await Promise.race([heard, delay(1_000)]);
    missed += left;
    slowest.push(performance.now() - sentMs);
    await delay(pauseMs);
  }
  await Promise.all([...all.map((one) => one.close()), pool.end()]);
  slowest.sort((one, other) => one - other);
  const at = (fraction: number) => slowest[Math.floor(slowest.length * fraction)] ?? 0;
  return { listeners, slowest: { p50: at(0.5), p99: at(0.99) }, missed, idleCores };
}
