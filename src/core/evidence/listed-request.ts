import type { ReadAttempt } from '../attempt-record.ts';
import { readAttempts } from '../attempt-record.ts';
import { errorTypeIn } from '../log/error-text.ts';
import type { LogColumnName, StoredRow } from '../log/log-columns.ts';
import { formatTimestampMicros } from '../timestamp.ts';
import type { ServedPlace } from './evidence-counts.ts';
import type { ReportRequest } from './report-lines.ts';

/** What a report is made of. Of an error it has the type: the text may have words of vendors. */
export const evidenceColumns = [
  'user_id',
  'request_id',
  'mode',
  'residency_bound_by',
  'status',
  'error',
  'residency_actual',
  'provider',
  'model',
  'key_id',
  'cache',
  'tables_version',
  'attempts',
] as const satisfies readonly LogColumnName[];

/** A row that had to stay in India, as the log holds it. */
export type EvidenceRow = StoredRow<(typeof evidenceColumns)[number]>;

/** The attempt whose answer the client has, or a part of it. */
const answered = (attempts: readonly ReadAttempt[]): ReadAttempt | undefined =>
  attempts.find(({ end }) => end === 'served' || end === 'cut');

/** The row says where a request that nobody answered would have gone; that is not where it was served. */
function placeOf({ residency_actual, status }: EvidenceRow, attempt: ReadAttempt | undefined): ServedPlace {
  if (residency_actual === 'cache') return 'cache';
  if (attempt === undefined && status !== 'success') return 'none';
  return attempt?.place.residency ?? residency_actual;
}

function attemptOf({ report, place, key_id, end }: ReadAttempt): ReportRequest['attempts'][number] {
  const { provider, model, status } = report;
  return { provider, model, key_id, ...place, status, end };
}

function originOf({ cache }: EvidenceRow): ReportRequest['cached_from'] {
  if (cache?.result !== 'hit') return null;
  // Rows from before the first release may name nobody.
  return { provider: cache.provider ?? '', model: cache.model ?? '', request_id: cache.request_id ?? null };
}

/** The line of a request, without its hash; `number`: from 1. */
export function listedRequest(row: EvidenceRow, number: number): Omit<ReportRequest, 'hash'> {
  const { user_id, request_id, mode, status, provider, model, key_id, tables_version } = row;
  const attempts = readAttempts(row.attempts, { key_id, usage: null });
  const answer = answered(attempts);
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
    error: errorTypeIn(row.error),
    served_in: placeOf(row, answer),
    provider,
    model,
    key_id,
    address_class: answer?.place.address_class ?? null,
    cached_from: originOf(row),
    tables_version,
    attempts: attempts.map(attemptOf),
  };
}
