import { StoreAway } from '../../core/store-away.ts';
import { FairTurns } from '../../fair-turns.ts';

/** With a look-up of a Postgres that answers, the whole call ends within 2 s. */
const patienceMs = 900;

/**
 * Look-ups of keys that nobody here knows. Strangers can send any number of them: 1,500 connections that each sent one
 * after the other let a user who came for the first time wait for a second, and whoever managed keys, since all
 * share the pool. So they have half of it, and take turns by the networks of their clients. Late ones are StoreAway.
 *
 * `connections`: of the whole pool.
 */
export const lookUpTurns = (connections: number): FairTurns =>
  new FairTurns({
    mostUnderWay: Math.max(1, Math.floor(connections / 2)),
    maxWaitMs: patienceMs,
    late: () => new StoreAway(new Error('Too many unknown keys are looked up.'), true),
  });
