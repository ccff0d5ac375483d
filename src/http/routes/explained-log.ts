import type { ExplainedRow, Explanation } from '../../adapters/postgres/read-log-row.ts';
import { formatMicroUsd } from '../../core/answer/cost.ts';
import type { AttemptRow } from '../../core/attempt-record.ts';
import { NotFoundError } from '../../core/errors.ts';
import { largestBigint } from '../../core/largest-bigint.ts';
import type { Answer } from '../mount.ts';
import type { LogsDeps } from './logs.ts';
import { publicRow } from './logs.ts';

const rowId = /^\d{1,19}$/;

/** Of the attempt that served, the row itself holds the key and the usage. */
function attemptOf(attempt: AttemptRow, { row, explanation }: ExplainedRow) {
  const { end, failure: _failure, residency = null, key_id = null, usage = null, ...rest } = attempt;
  const { declared_region = null, address_class = null, ...report } = rest;
  const place = { residency, declared_region, address_class };
  const { input_tokens, output_tokens } = row;
  const { usage_basis: basis } = explanation;
  if (end !== 'served') return { ...report, ...place, key_id, usage };
  const stated = basis === null || basis === 'none' ? null : { basis, input_tokens, output_tokens };
  return { ...report, ...place, key_id: explanation.key_id, usage: stated };
}

function cacheOf({ cache }: Explanation): Answer<'explainLog'>['cache'] {
  if (cache === null) return null;
  if (cache.result === 'miss') return { result: 'miss', from: null };
  const { result, ...from } = cache;
  return { result, from };
}

function explained(found: ExplainedRow): Answer<'explainLog'> {
  const { row, explanation } = found;
  const { request_id, trace_id, tables_version, stream, ttft_ms, key_id, residency_bound_by, price } =
    explanation;
  return {
    ...publicRow(row),
    request_id,
    trace_id,
    tables_version,
    stream,
    ttft_ms,
    key_id,
    residency_bound_by,
    usage: {
      basis: explanation.usage_basis,
      cached_input_tokens: Number(explanation.cached_input_tokens),
      cache_write_tokens: Number(explanation.cache_write_tokens),
      cache_write_long_tokens: Number(explanation.cache_write_long_tokens),
      reasoning_tokens: Number(explanation.reasoning_tokens),
    },
    saved_usd: formatMicroUsd(BigInt(explanation.saved_micro_usd)),
    price,
    cache: cacheOf(explanation),
    candidates: explanation.candidates?.slice() ?? null,
    attempts: explanation.attempts.map((attempt) => attemptOf(attempt, found)),
  };
}

/** `GET /v1/logs/{log_id}`: why the request went as it did. Throws NotFoundError for a row that is not the caller's. */
export async function explainedLog(
  deps: Pick<LogsDeps, 'readLogRow'>,
  userId: string,
  param: string,
): Promise<Answer<'explainLog'>> {
  const id = rowId.test(param) ? BigInt(param) : null;
  const found = id === null || id > largestBigint ? null : await deps.readLogRow(userId, id);
  if (found === null) throw new NotFoundError('No such log row.');
  return explained(found);
}
