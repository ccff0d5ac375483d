import type { StoredUsage } from '../../core/attempt-record.ts';
import { readAttempts } from '../../core/attempt-record.ts';
import { NotFoundError } from '../../core/errors.ts';
import { largestBigint } from '../../core/largest-bigint.ts';
import type { StoredRow } from '../../core/log/log-columns.ts';
import { detailColumns } from '../../core/log/log-columns.ts';
import { fieldsShown } from '../../core/log/shown-columns.ts';
import type { RouteAnswer } from '../mount.ts';
import { listedRow } from './logs.ts';

export interface LogDetailStore {
  /** Null for a row that is not the caller's. */
  readonly readLogRow: (userId: string, id: bigint) => Promise<StoredRow | null>;
}

const rowId = /^\d{1,19}$/;

const detailsOf = fieldsShown(detailColumns);

function attemptsOf(row: StoredRow): RouteAnswer<'explainLog'>['attempts'] {
  const { attempts, key_id, input_tokens, output_tokens, usage_basis: basis } = row;
  const usage: StoredUsage | null =
    basis === null || basis === 'none' ? null : { basis, input_tokens, output_tokens };
  return readAttempts(attempts, { key_id, usage }).map(({ report, place, ...attempt }) => ({
    ...report,
    ...place,
    key_id: attempt.key_id,
    usage: attempt.usage,
  }));
}

function cacheOf({ cache }: StoredRow): RouteAnswer<'explainLog'>['cache'] {
  if (cache === null) return null;
  if (cache.result === 'miss') return { result: 'miss', from: null };
  const { result, ...from } = cache;
  return { result, from };
}

function explained(row: StoredRow): RouteAnswer<'explainLog'> {
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
    attempts: attemptsOf(row),
  };
}

/** `GET /v1/logs/{log_id}`: why the request went as it did. Throws NotFoundError for a row that is not the caller's. */
export async function explainedLog(
  store: LogDetailStore,
  userId: string,
  logId: string,
): Promise<RouteAnswer<'explainLog'>> {
  const id = rowId.test(logId) ? BigInt(logId) : null;
  const found = id === null || id > largestBigint ? null : await store.readLogRow(userId, id);
  if (found === null) throw new NotFoundError('No such log row.');
  return explained(found);
}
