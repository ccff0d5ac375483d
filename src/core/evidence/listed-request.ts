import type { AttemptRow } from '../attempt-record.ts';
import type { ResidencyBinder } from '../request/residency.ts';
import type { RequestStatus, ShownResidency } from '../settled-request.ts';
import { formatTimestampMicros } from '../timestamp.ts';
import type { ServedPlace } from './evidence-counts.ts';
import type { ReportRequest } from './report-lines.ts';

/** A row that had to stay in India, as the log holds it. */
export interface EvidenceRow {
  readonly id: string;
  /** Microseconds since the epoch. */
  readonly created_micros: string;
  readonly user_id: string;
  readonly request_id: string;
  readonly mode: string;
  readonly residency_bound_by: ResidencyBinder | null;
  readonly status: RequestStatus;
  readonly error_type: string | null;
  readonly residency_actual: ShownResidency;
  readonly provider: string;
  readonly model: string;
  readonly key_id: string | null;
  readonly cache: CachedFrom | null;
  readonly tables_version: string;
  readonly attempts: readonly AttemptRow[];
}

/** Of a miss it names nobody. */
interface CachedFrom {
  readonly result: 'hit' | 'miss';
  readonly provider?: string;
  readonly model?: string;
  readonly request_id?: string | null;
}

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
  return { provider: cache.provider ?? '', model: cache.model ?? '', request_id: cache.request_id ?? null };
}

/** The line of a request, without its hash; `number`: from 1. */
export function listedRequest(row: EvidenceRow, number: number): Omit<ReportRequest, 'hash'> {
  const { user_id, request_id, mode, status, provider, model, key_id, tables_version } = row;
  return {
    kind: 'request',
    number,
    id: Number(row.id),
    created_at: formatTimestampMicros(BigInt(row.created_micros)),
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
