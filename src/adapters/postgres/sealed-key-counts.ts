import type pg from 'pg';
import type { Sealer } from '../system/sealer.ts';
import type { SealedKeyRow } from './sealed-key-row.ts';
import { heldKeyOf, sealedKeyColumns } from './sealed-key-row.ts';

/** A rotation takes minutes at least; counting reads the whole table. */
const refreshIntervalMs = 60_000;

/** So many of the newest keys under one id are opened: one alone may have been tampered with. */
const samples = 3;

export interface SealedKeyCounts {
  /** Provider keys by the id of the master key that sealed them, of those that open. */
  readonly byId: ReadonlyMap<string, number>;
  /** Under ids that are not configured, or whose bytes are others now: the newest of them do not open. */
  readonly unopened: number;
}

export interface SealedKeyCountsOptions {
  readonly count: () => Promise<SealedKeyCounts>;
  /** Keys that do not open are there, where there were none. */
  readonly onUnopened: (keys: number) => void;
  /** When the schema is there. */
  readonly opened: Promise<unknown>;
  readonly monotonicMs: () => number;
}

export async function countSealedKeys(
  pool: pg.Pool,
  { open }: Pick<Sealer, 'open'>,
): Promise<SealedKeyCounts> {
  const { rows } = await pool.query<SealedKeyRow & { held: number }>(
    `SELECT * FROM (
       SELECT ${sealedKeyColumns}, count(*) OVER (PARTITION BY master_key_id)::integer AS held,
         row_number() OVER (PARTITION BY master_key_id ORDER BY created_at DESC, id) AS place
       FROM provider_keys
     ) AS keys WHERE place <= ${samples}`,
  );
  const held = new Map(rows.map((row) => [row.master_key_id, row.held]));
  const opened = new Set(rows.flatMap((row) => (open(heldKeyOf(row)) === null ? [] : [row.master_key_id])));
  const byId = new Map([...held].filter(([id]) => opened.has(id)));
  const unopened = [...held].reduce((sum, [id, count]) => (opened.has(id) ? sum : sum + count), 0);
  return { byId, unopened };
}

/**
 * Counts when the schema is there, and again when it is asked and a minute has passed; so nothing is counted
 * where nobody asks. Answers at once with the last count: null before the first one.
 */
export function watchSealedKeys(options: SealedKeyCountsOptions): () => SealedKeyCounts | null {
  const { count, onUnopened, opened, monotonicMs } = options;
  let counts: SealedKeyCounts | null = null;
  let dueAtMs = Number.POSITIVE_INFINITY;
  const refresh = async (): Promise<void> => {
    dueAtMs = monotonicMs() + refreshIntervalMs;
    try {
      const before = counts?.unopened ?? 0;
      counts = await count();
      if (before === 0 && counts.unopened > 0) onUnopened(counts.unopened);
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
