import type { Periods, Spent } from '../core/limits/budget.ts';
import type { SharedAnswer, SharedRequest, UserNews } from '../core/limits/shared-counts.ts';

/** `unsent`: the store knows nothing of it. `unanswered`: it may. */
export type NoAnswer = 'unsent' | 'unanswered';

/** Counts of users over all replicas. */
export interface SharedLimits {
  /** One command, within the connection's command timeout. Never rejects. */
  admit(request: SharedRequest): Promise<SharedAnswer | NoAnswer>;
  /**
   * A command each, for whose answers nobody waits; false: the store is not to be asked now, and knows nothing.
   * `onRefused`: nor does it know of the one in this place, to which it said no.
   */
  settle(news: readonly UserNews[], onRefused: (place: number) => void): boolean;
}

/** A limit on calls per window; the name is unique within its group. */
export interface NamedLimit {
  readonly name: string;
  readonly limit: number;
}

/**
 * Counts one call over all replicas: ms to wait, 0 when every limit has room, null when the store does not say. The
 * first limit that is full keeps the call from counting in the next.
 */
export type SharedCount = (limits: readonly NamedLimit[]) => Promise<number | null>;

/** What users spent by what is written down, those with nothing left out. Rejects while the database is away. */
export type ReadSpent = (userIds: readonly string[], periods: Periods) => Promise<ReadonlyMap<string, Spent>>;
