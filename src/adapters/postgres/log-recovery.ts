import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Clock } from '../../chat/ports.ts';
import type { RowSpool } from '../spool/row-spool.ts';
import { insertLogRows } from './log-insert.ts';
import type { SpoolReplay } from './spool-replay.ts';

const firstProbeMs = 100;
const longestProbeMs = 1000;
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
  readonly onAway: () => void;
  readonly onBack: () => void;
}

/** True when the log table takes writes: Postgres may be up, yet its disk full or the table locked. */
async function takesRows(pool: pg.Pool): Promise<boolean> {
  try {
    await insertLogRows(pool, []);
    return true;
  } catch {
    return false;
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
      if (await takesRows(pool)) {
        options.onBack();
        probeMs = firstProbeMs;
        abandonedDueMs = 0;
      } else {
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
