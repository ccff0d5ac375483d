import type { AttemptRow } from '../../core/attempt-record.ts';
import { NotFoundError } from '../../core/errors.ts';
import { largestBigint } from '../../core/largest-bigint.ts';
import type { StoredRow } from '../../core/log/log-columns.ts';
import { detailColumns } from '../../core/log/log-columns.ts';
import { fieldsShown } from '../../core/log/shown-columns.ts';
import type { Answer } from '../mount.ts';
import { listedRow } from './logs.ts';

export interface LogDetailStore {
  /** Null for a row that is not the caller's. */
  readonly readLogRow: (userId: string, id: bigint) => Promise<StoredRow | null>;
}

const rowId = /^\d{1,19}$/;

const detailsOf = fieldsShown(detailColumns);

/** Of the attempt that served, the row itself holds the key and the usage. */
function attemptOf(attempt: AttemptRow, row: StoredRow) {
  const { end, failure: _failure, residency = null, key_id = null, usage = null, ...rest } = attempt;
  const { declared_region = null, address_class = null, ...report } = rest;
  const place = { residency, declared_region, address_class };
  if (end !== 'served') return { ...report, ...place, key_id, usage };
  const { input_tokens, output_tokens, usage_basis: basis } = row;
  const stated = basis === null || basis === 'none' ? null : { basis, input_tokens, output_tokens };
  return { ...report, ...place, key_id: row.key_id, usage: stated };
}

function cacheOf({ cache }: StoredRow): Answer<'explainLog'>['cache'] {
  if (cache === null) return null;
  if (cache.result === 'miss') return { result: 'miss', from: null };
  const { result, ...from } = cache;
  return { result, from };
}

function explained(row: StoredRow): Answer<'explainLog'> {
  return {
    ...listedRow(row),
    ...detailsOf(row),
    usage: {
      basis: row.usage_basis,
      cached_input_tokens: row.cached_input_tokens,
      cache_write_tokens: row.cache_write_tokens,
      cache_write_long_tokens: row.cache_write_long_tokens,
      reasoning_tokens: row.reasoning_tokens,
    },
    price: row.price,
    cache: cacheOf(row),
    candidates: row.candidates,
    attempts: row.attempts.map((attempt) => attemptOf(attempt, row)),
  };
}

/** `GET /v1/logs/{log_id}`: why the request went as it did. Throws NotFoundError for a row that is not the caller's. */
export async function explainedLog(
  store: LogDetailStore,
  userId: string,
  logId: string,
): Promise<Answer<'explainLog'>> {
  const id = rowId.test(logId) ? BigInt(logId) : null;
  const found = id === null || id > largestBigint ? null : await store.readLogRow(userId, id);
  if (found === null) throw new NotFoundError('No such log row.');
  return explained(found);
}
