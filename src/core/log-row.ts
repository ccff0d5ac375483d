import type { AttemptReport } from './errors.ts';
import type { Residency, ResidencyRequest } from './residency.ts';
import type { Usage } from './usage.ts';

export type LogStatus = 'success' | 'error' | 'client_closed' | 'incomplete';

/**
 * The settlement of one chat request: what SPEC 2.5 shows plus what operators need. Written exactly once.
 */
export interface LogRow {
  /** Made by the gateway; the unique key of the row, so that replays insert once. */
  readonly rowId: string;
  readonly userId: string;
  /** The effective X-Request-ID; clients may repeat it. */
  readonly requestId: string;
  /** Microseconds since the epoch, stamped at settlement. */
  readonly createdAtMicros: number;
  /** `gw/cheap` … or `override`. */
  readonly mode: string;
  /** Serving provider, `cache`, or `none`. */
  readonly provider: string;
  /** Serving model, `provider:model` on a cache hit, or `none`. */
  readonly model: string;
  /** Which of the caller's keys served; null where none did, or the answer came from the cache. */
  readonly keyId: string | null;
  readonly usage: Usage;
  readonly latencyMs: number;
  /** Milliseconds to the first token; null for JSON answers and refusals. */
  readonly ttftMs: number | null;
  readonly costMicroUsd: bigint;
  /** What a cache hit would have cost; 0 otherwise. */
  readonly savedMicroUsd: bigint;
  readonly cacheHit: boolean;
  readonly stream: boolean;
  readonly status: LogStatus;
  /** `<type>: <message>`, redacted, at most 500 characters; null on success. */
  readonly error: string | null;
  readonly residencyRequested: ResidencyRequest;
  readonly residencyActual: Residency | 'cache';
  readonly attempts: readonly AttemptReport[];
  /** How many of them were tried, and not passed over. */
  readonly tries: number;
  /** Hash of the tables that planned and priced the request. */
  readonly tablesVersion: string;
  readonly traceId: string | null;
}
