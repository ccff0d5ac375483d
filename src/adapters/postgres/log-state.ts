/**
 * The log of requests is
 *
 *   committing  rows wait in the queue for a writer
 *   away        Postgres is known to take no rows: they go straight to the spool, until it has written some again
 *   closing     the process ends: rows go straight to the spool or are printed; for good
 *
 * committing ⇄ away → closing, and committing → closing.
 */
export type LogState = 'committing' | 'away' | 'closing';

const moves: Readonly<Record<LogState, readonly LogState[]>> = {
  committing: ['away', 'closing'],
  away: ['committing', 'closing'],
  closing: [],
};

/** The state after `from`. Throws where `to` does not follow. */
export function moved(from: LogState, to: LogState): LogState {
  if (!moves[from].includes(to)) throw new Error(`a log that is ${from} cannot be ${to}`);
  return to;
}
