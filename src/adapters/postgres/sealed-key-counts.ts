import type pg from 'pg';

/** A rotation takes minutes at least; counting reads the whole table. */
const refreshIntervalMs = 60_000;

/** Provider keys by the id of the master key that sealed them. */
export type SealedKeyCounts = ReadonlyMap<string, number>;

export interface SealedKeyCountsOptions {
  readonly count: () => Promise<SealedKeyCounts>;
  /** When the schema is there. */
  readonly opened: Promise<unknown>;
  readonly monotonicMs: () => number;
}

export async function countSealedKeys(pool: pg.Pool): Promise<SealedKeyCounts> {
  const { rows } = await pool.query<{ kid: string; held: number }>(
    'SELECT master_key_id AS kid, count(*)::integer AS held FROM provider_keys GROUP BY master_key_id',
  );
  return new Map(rows.map(({ kid, held }) => [kid, held]));
}

/**
 * Counts when the schema is there, and again when it is asked and a minute has passed; so nothing is counted
 * where nobody asks. Answers at once with the last count: null before the first one.
 */
export function watchSealedKeys(options: SealedKeyCountsOptions): () => SealedKeyCounts | null {
  const { count, opened, monotonicMs } = options;
  let counts: SealedKeyCounts | null = null;
  let dueAtMs = Number.POSITIVE_INFINITY;
  const refresh = async (): Promise<void> => {
    dueAtMs = monotonicMs() + refreshIntervalMs;
    try {
      counts = await count();
    } catch {
      // Postgres is away, which other metrics show: the last count stays until the next one.
    }
  };
  opened.then(refresh, () => undefined);
  return () => {
    if (monotonicMs() >= dueAtMs) void refresh();
    return counts;
  };
}
