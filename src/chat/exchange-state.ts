import { clientStallMs, lingerMs, usageReadMs } from './exchange-limits.ts';

/**
 * Where an exchange stands, in the order it goes:
 *
 * | state        | what it waits for                                                    | for how long         |
 * |--------------|----------------------------------------------------------------------|----------------------|
 * | `connecting` | the status and headers of the answer                                 | limit of the attempt |
 * | `whole-body` | the end of a JSON answer, or of the body of an error                 | limit of the attempt |
 * | `prefix`     | the first token of a stream: what comes before it is held            | limit of the attempt |
 * | `streaming`  | the next bytes                                                       | limit of silence     |
 * |   paused     | the client that is to read them                                      | `clientStallMs`      |
 * | `usage-only` | the usage of a stream: the client left with the whole of its text    | `usageReadMs`        |
 * | `lingering`  | the vendor to close the body of a whole stream: the socket is reused | `lingerMs`           |
 * | `closed`     | nothing: all that it held is given back                              |                      |
 *
 * All states but the last two end with the request's own time at the latest.
 */
export type ExchangeState =
  | 'connecting'
  | 'whole-body'
  | 'prefix'
  | 'streaming'
  | 'usage-only'
  | 'lingering'
  | 'closed';

/** Where each state may lead. */
export const exchangeMoves: Readonly<Record<ExchangeState, readonly ExchangeState[]>> = {
  connecting: ['whole-body', 'prefix', 'closed'],
  'whole-body': ['closed'],
  prefix: ['streaming', 'closed'],
  streaming: ['usage-only', 'lingering', 'closed'],
  'usage-only': ['lingering', 'closed'],
  lingering: ['closed'],
  closed: [],
};

/** The state after a move; throws for one that the table lacks, which is a bug of ours. */
export function movedTo(next: ExchangeState, from: ExchangeState): ExchangeState {
  if (exchangeMoves[from].includes(next)) return next;
  throw new Error(`An exchange that is ${from} cannot become ${next}.`);
}

/** All that the end of a state's time depends on, in monotonic milliseconds. */
export interface ExchangeTimes {
  /** Limit of the attempt up to the answer or the first token. */
  readonly attemptDueMs: number;
  /** Limit of the whole request. */
  readonly requestDueMs: number;
  /** How long, in milliseconds, an open stream may be silent. */
  readonly idleMs: number;
  /** When the last word of the answer was there: from then on its usage or the end of its body is waited for. */
  answeredAtMs: number;
  /** When the last bytes of a stream came, or the client took them again. */
  lastActivityMs: number;
  /** Since when the client has not kept up; null: it does. */
  pausedAtMs: number | null;
}

/** When the time of a state is up, monotonic milliseconds; infinite for one that waits for nothing. */
export function dueMs(state: ExchangeState, times: ExchangeTimes): number {
  const { attemptDueMs, requestDueMs, pausedAtMs } = times;
  switch (state) {
    case 'connecting':
    case 'whole-body':
    case 'prefix':
      return Math.min(attemptDueMs, requestDueMs);
    case 'streaming': {
      const due = pausedAtMs === null ? times.lastActivityMs + times.idleMs : pausedAtMs + clientStallMs;
      return Math.min(due, requestDueMs);
    }
    case 'usage-only':
      return Math.min(times.answeredAtMs + usageReadMs, requestDueMs);
    case 'lingering':
      return times.answeredAtMs + lingerMs;
    case 'closed':
      return Number.POSITIVE_INFINITY;
  }
}
