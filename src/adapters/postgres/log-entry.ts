/** A row on its way to Postgres or the spool. */
export interface Entry {
  readonly text: string;
  readonly enteredAtMs: number;
  readonly resolve: () => void;
  /** Committed, spooled or printed. */
  settled: boolean;
  /** The append in progress. */
  spooling: Promise<boolean> | null;
}

/** The rows that one writer is inserting. */
export interface Flight {
  readonly entries: readonly Entry[];
  readonly startedAtMs: number;
}
