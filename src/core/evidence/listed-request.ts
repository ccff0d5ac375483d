import type { AttemptRow } from '../attempt-record.ts';
import type { LogColumnName, StoredRow } from '../log/log-columns.ts';
import { formatTimestampMicros } from '../timestamp.ts';
import type { ServedPlace } from './evidence-counts.ts';
import type { ReportRequest } from './report-lines.ts';

/** What a report is made of, beside the type of an error: its text may have words of vendors. */
export const evidenceColumns = [
  'user_id',
  'request_id',
  'mode',
  'residency_bound_by',
  'status',
  'residency_actual',
  'provider',
  'model',
  'key_id',
  'cache',
  'tables_version',
  'attempts',
] as const satisfies readonly LogColumnName[];

/** A row that had to stay in India, as the log holds it. */
export type EvidenceRow = StoredRow<(typeof evidenceColumns)[number]> & {
  readonly error_type: string | null;
};

/** The attempt whose answer the client has, or a part of it. */
const answered = (attempts: readonly AttemptRow[]): AttemptRow | undefined =>
  attempts.find(({ end }) => end === 'served' || end === 'cut');

/** The row says where a request that nobody answered would have gone; that is not where it was served. */
function placeOf({ residency_actual, status, attempts }: EvidenceRow): ServedPlace {
  if (residency_actual === 'cache') return 'cache';
  const attempt = answered(attempts);
  if (attempt === undefined && status !== 'success') return 'none';
  return attempt?.residency ?? residency_actual;
}

function attemptOf(attempt: AttemptRow, row: EvidenceRow): ReportRequest['attempts'][number] {
  const { provider, model, status, end = null } = attempt;
  const { residency = null, declared_region = null, address_class = null } = attempt;
  // Of the one that served, the row itself has the key.
  const key_id = end === 'served' ? row.key_id : (attempt.key_id ?? null);
  return { provider, model, key_id, residency, declared_region, address_class, status, end };
}

function originOf({ cache }: EvidenceRow): ReportRequest['cached_from'] {
  if (cache?.result !== 'hit') return null;
  // Rows from before the first release may name nobody.
  return { provider: cache.provider ?? '', model: cache.model ?? '', request_id: cache.request_id ?? null };
}

/** The line of a request, without its hash; `number`: from 1. */
export function listedRequest(row: EvidenceRow, number: number): Omit<ReportRequest, 'hash'> {
  const { user_id, request_id, mode, status, provider, model, key_id, tables_version } = row;
  return {
    kind: 'request',
    number,
    id: Number(row.id),
    created_at: formatTimestampMicros(row.created_micros),
    user_id,
    request_id,
    mode,
    bound_by: row.residency_bound_by,
    status,
    error: row.error_type,
    served_in: placeOf(row),
    provider,
    model,
    key_id,
    address_class: answered(row.attempts)?.address_class ?? null,
    cached_from: originOf(row),
    tables_version,
    attempts: row.attempts.map((attempt) => attemptOf(attempt, row)),
  };
}
