import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Clock } from '../../chat/ports.ts';
import type { RowSpool } from '../spool/row-spool.ts';
import { insertLogRows } from './log-insert.ts';
import type { SpoolReplay } from './spool-replay.ts';

/** A Postgres that was restarted takes rows again after a second or so, and every replica asks. */
const firstProbeMs = 100;
const longestProbeMs = 1000;
/** A row that Postgres refused for its content, or that came while it was away, is there so much later at most. */
const intervalMs = 250;
/** How often folders left behind by dead processes are looked for. */
const abandonedIntervalMs = 30_000;

export interface LogRecoveryOptions {
  readonly pool: pg.Pool;
  readonly spool: RowSpool;
  readonly replay: SpoolReplay;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly signal: AbortSignal;
  readonly isAway: () => boolean;
  readonly onAway: (cause: unknown) => void;
  readonly onBack: () => void;
}

/** Why the log table takes no writes: Postgres may be up, yet its disk full or the table locked. Null: it does. */
async function whyNoRows(pool: pg.Pool): Promise<{ readonly cause: unknown } | null> {
  try {
    await insertLogRows(pool, []);
    return null;
  } catch (cause) {
    return { cause };
  }
}

/**
 * Until `signal` fires: finds out when Postgres and the spool's disk are back, and empties the spools,
 * those of dead processes included, at the start, after every return and every half minute. Never rejects.
 */
export async function recoverInBackground(options: LogRecoveryOptions): Promise<void> {
  const { pool, spool, replay, clock, signal } = options;
  let probeMs = firstProbeMs;
  let abandonedDueMs = 0;
  while (!signal.aborted) {
    if (options.isAway()) {
      await spool.retry();
      const obstacle = await whyNoRows(pool);
      if (obstacle === null) {
        options.onBack();
        probeMs = firstProbeMs;
        abandonedDueMs = 0;
      } else {
        options.onAway(obstacle.cause);
        probeMs = Math.min(probeMs * 2, longestProbeMs);
      }
    }
    if (!options.isAway()) {
      const nowMs = clock.monotonicMs();
      const abandonedToo = nowMs >= abandonedDueMs;
      if (abandonedToo) abandonedDueMs = nowMs + abandonedIntervalMs;
      await replay.run(abandonedToo, signal).catch(options.onAway);
    }
    await sleep(options.isAway() ? probeMs : intervalMs, undefined, { signal }).catch(() => {});
  }
}
