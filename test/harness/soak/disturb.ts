import { setTimeout as pause } from 'node:timers/promises';
import type { Asking } from './asking.ts';
import type { Store } from './fail-overs.ts';
import { failOver } from './fail-overs.ts';
import { keyChanges } from './key-changes.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { reloads } from './reloads.ts';
import type { SoakWorld } from './world.ts';

/** The load has found its pace by then. */
const firstAfterMs = 2_000;
/** Rounds of any length have a reload, and a long one has it as often as an operator in a hurry makes it. */
const reloadEveryMs = 20_000;
const changeKeysEveryMs = 10_000;

/** What has been done so far. */
export interface Done {
  reloads: number;
  keyChanges: number;
  /** Seconds each, from the take-over until all was as before. */
  readonly failOvers: Record<Store, number[]>;
}

export interface Disturber {
  readonly done: Done;
  /** Reloads, changes keys and fails a store over while requests run; ends after what it is at when `isOver` fires. */
  disturb(store: Store | null, isOver: AbortSignal): Promise<void>;
}

export async function startDisturber(world: SoakWorld, asking: Asking): Promise<Disturber> {
  const [reload, changeKeys] = [reloads(world, asking), await keyChanges(world, asking)];
  const done: Done = { reloads: 0, keyChanges: 0, failOvers: { Postgres: [], Redis: [] } };
  // Keys cannot be changed where Postgres is away, and users whose keys have just been are not known then.
  const withPostgres = oneAtATime();
  const failStoreOver = async (store: Store) => {
    await pause(firstAfterMs);
    done.failOvers[store].push(await failOver(world, store));
  };
  return {
    done,
    disturb: async (store, isOver) => {
      await Promise.all([
        repeat(reloadEveryMs, isOver, async () => {
          await reload();
          done.reloads += 1;
        }),
        repeat(changeKeysEveryMs, isOver, async () => {
          await withPostgres(changeKeys);
          done.keyChanges += 1;
        }),
        store === 'Postgres' ? withPostgres(() => failStoreOver(store)) : undefined,
        store === 'Redis' ? failStoreOver(store) : undefined,
      ]);
    },
  };
}

/** Does `work` soon and then as often, until `isOver` fires; what has begun then ends. */
async function repeat(everyMs: number, isOver: AbortSignal, work: () => Promise<void>): Promise<void> {
  for (let waitMs = firstAfterMs; ; waitMs = everyMs) {
    await pause(waitMs, undefined, { signal: isOver }).catch(() => undefined);
    if (isOver.aborted) return;
    await work();
  }
}
