import type { Counts, MinuteLimit } from './limit-table.ts';

/** What a replica tells of a user: counted there since it last did so. */
export interface UserNews extends Counts {
  readonly userId: string;
  /** Streams under way there, a new one included; null: not limited, or nothing new. */
  readonly streams: number | null;
}

/** One more request of a user. */
export interface SharedRequest extends UserNews {
  /** Null: no such limit. */
  readonly most: Readonly<Record<MinuteLimit, number | null>>;
  readonly isStream: boolean;
}

/** What all replicas together have of a user, this request included where it was admitted. */
export interface SharedAnswer extends Counts {
  /** Null: it is admitted. */
  readonly refusedBy: MinuteLimit | null;
  readonly leftMs: number;
  readonly otherStreams: number;
}
