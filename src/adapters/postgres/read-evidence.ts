import type pg from 'pg';
import type { EvidenceRow } from '../../core/evidence/listed-request.ts';
import { evidenceColumns } from '../../core/evidence/listed-request.ts';
import type { HourlyRows } from '../../core/evidence/write-report.ts';
import type { Period } from '../../core/timestamp.ts';
import { formatTimestampMicros, hourOf, microsPerHour } from '../../core/timestamp.ts';
import { logRowReader } from './log-row-reader.ts';
import { inSnapshot, portionsOf } from './read-through-cursor.ts';
import { microsOf } from './sql-micros.ts';

/** Counted by one statement: a day of a busy gateway takes a second, and a year of hours no longer than that. */
const stretchMicros = 24n * microsPerHour;

const inPeriod = `created_at >= $1::timestamptz AND created_at < $2::timestamptz AND ($3::uuid IS NULL OR user_id = $3)`;

const hoursSql = `
  SELECT ${microsOf("date_trunc('hour', created_at, 'UTC')")} AS hour_micros, count(*) AS rows
  FROM request_logs WHERE ${inPeriod} GROUP BY 1`;

const reader = logRowReader(evidenceColumns);
const rowsSql = `
  SELECT ${reader.select}
  FROM request_logs
  WHERE ${inPeriod} AND residency_requested IS NOT NULL
  ORDER BY created_at, id`;

const momentSql = `
  SELECT ${microsOf('transaction_timestamp()')} AS read_micros,
    (SELECT ${microsOf('min(created_at)')} FROM request_logs) AS oldest_micros`;

/** What evidence is made of, in order: the moment of the reading, then stretches of hours, each before its rows. */
export type EvidencePart =
  /** Microseconds since the epoch; null: the log is empty. */
  | { readonly kind: 'moment'; readonly readMicros: bigint; readonly oldestMicros: bigint | null }
  | { readonly kind: 'hours'; readonly sinceMicros: bigint; readonly rows: HourlyRows }
  | { readonly kind: 'requests'; readonly rows: readonly EvidenceRow[]; readonly untilMicros: bigint };

async function* readParts(
  client: pg.Client,
  { sinceMicros, untilMicros }: Period,
  userId: string | null,
): AsyncGenerator<EvidencePart> {
  const { rows } = await client.query<{ read_micros: string; oldest_micros: string | null }>(momentSql);
  const { read_micros = '0', oldest_micros = null } = rows[0] ?? {};
  const oldestMicros = oldest_micros === null ? null : BigInt(oldest_micros);
  yield { kind: 'moment', readMicros: BigInt(read_micros), oldestMicros };
  for (let fromMicros = sinceMicros; fromMicros < untilMicros; ) {
    const end = hourOf(fromMicros) + stretchMicros;
    const toMicros = end < untilMicros ? end : untilMicros;
    const bounds = [formatTimestampMicros(fromMicros), formatTimestampMicros(toMicros), userId];
    const counted = await client.query<{ hour_micros: string; rows: string }>(hoursSql, bounds);
    const hours = counted.rows.map((hour) => [BigInt(hour.hour_micros), Number(hour.rows)] as const);
    yield { kind: 'hours', sinceMicros: hourOf(fromMicros), rows: new Map(hours) };
    for await (const portion of portionsOf(client, rowsSql, bounds, reader.row)) {
      yield { kind: 'requests', ...portion };
    }
    fromMicros = toMicros;
  }
}

/** What is known of the requests of a period, of one user or (null) of all. As `inSnapshot`. */
export const readEvidence = (
  url: string,
  period: Period,
  userId: string | null,
): AsyncGenerator<EvidencePart> => inSnapshot(url, 'report', (client) => readParts(client, period, userId));
