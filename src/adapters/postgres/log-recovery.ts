import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Clock } from '../../chat/ports.ts';
import type { RowSpool } from '../spool/row-spool.ts';
import { tryToWriteRows } from './log-trial.ts';
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
  readonly spool: Pick<RowSpool, 'retry'>;
  readonly replay: Pick<SpoolReplay, 'run'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly signal: AbortSignal;
  readonly isAway: () => boolean;
  readonly onAway: (cause: unknown) => void;
  readonly onBack: () => void;
}

/**
 * Finds out whether Postgres takes rows again by writing some: those of the spools, and where there are none, or it has
 * them all already, made ones. Nothing less tells of a full disk. Rejects with why not; `onBack` may have been called
 * before, for a batch that was taken.
 */
async function tryAgain({ pool, spool, replay, signal, onBack }: LogRecoveryOptions): Promise<void> {
  await spool.retry();
  let isBack = false;
  await replay.run(true, signal, () => {
    if (isBack) return;
    isBack = true;
    onBack();
  });
  if (isBack) return;
  await tryToWriteRows(pool);
  onBack();
}

/**
 * Until `signal` fires: finds out when Postgres and the spool's disk are back, and empties the spools,
 * those of dead processes included, at the start, at every return and every half minute. Never rejects.
 */
export async function recoverInBackground(options: LogRecoveryOptions): Promise<void> {
  const { replay, clock, signal, isAway } = options;
  let probeMs = firstProbeMs;
  let abandonedDueMs = 0;
  while (!signal.aborted) {
    const wasAway = isAway();
    const nowMs = clock.monotonicMs();
    const abandonedToo = wasAway || nowMs >= abandonedDueMs;
    if (abandonedToo) abandonedDueMs = nowMs + abandonedIntervalMs;
    try {
      if (wasAway) await tryAgain(options);
      else await replay.run(abandonedToo, signal, () => {});
    } catch (cause) {
      options.onAway(cause);
    }
    const pauseMs = isAway() ? probeMs : intervalMs;
    if (isAway()) probeMs = Math.min(probeMs * 2, longestProbeMs);
    // A disk with room for a few rows takes some, then none: only a whole round without a failure ends the outage.
    else if (!wasAway) probeMs = firstProbeMs;
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
  }
}
