import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StoredSums, SumsQuery } from '../../adapters/postgres/read-sums.ts';
import type { RequestSums } from '../../adapters/postgres/sum-groups.ts';
import { formatMicroUsd } from '../../core/answer/cost.ts';
import { InvalidRequestError } from '../../core/errors.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import { itemsOfOneTurn } from '../answers/long-answer.ts';
import type { Stats } from '../schemas/answer-schemas.ts';
import type { StatsQuery } from '../schemas/query-schemas.ts';

export interface StatsStore {
  /** `take` makes the answer while the user's turn lasts: long ones in the making are what takes memory. */
  readonly readSums: (
    userId: string,
    query: SumsQuery,
    take: (stored: StoredSums) => Promise<Stats>,
  ) => Promise<Stats>;
}

function publicSums(sums: RequestSums): Stats['totals'] {
  const inputTokens = Number(sums.input_tokens);
  const outputTokens = Number(sums.output_tokens);
  return {
    requests: Number(sums.requests),
    successes: Number(sums.successes),
    errors: Number(sums.requests - sums.successes),
    cache_hits: Number(sums.cache_hits),
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    cost_usd: formatMicroUsd(sums.cost_micro_usd),
    saved_usd: formatMicroUsd(sums.saved_micro_usd),
    latency_ms: sums.latencyMs,
  };
}

const boundText = (micros: bigint | null): string | null =>
  micros === null ? null : formatTimestampMicros(micros);

async function statsOf(stored: StoredSums, groupBy: Stats['group_by']): Promise<Stats> {
  if (stored.kind === 'too-many-groups') {
    const message = `More than ${stored.most} groups; narrow the range or group by less.`;
    throw new InvalidRequestError(message, 'group_by');
  }
  const groups: Stats['groups'] = [];
  for (const { names, sums } of stored.groups) {
    groups.push({ ...names, ...publicSums(sums) });
    // Chat requests have their turns in between.
    if (groups.length % itemsOfOneTurn === 0) await nextTurn();
  }
  return {
    since: boundText(stored.sinceMicros),
    until: boundText(stored.untilMicros),
    group_by: groupBy,
    totals: publicSums(stored.totals),
    groups,
  };
}

/**
 * Sums of the user's requests, in all and by what the query names; `write` is what is still to be done with them in the
 * user's turn. Throws InvalidRequestError for bounds in the wrong order and for more groups than one answer holds.
 */
export async function stats(
  store: StatsStore,
  userId: string,
  query: StatsQuery,
  write: (stats: Stats) => Promise<Stats>,
): Promise<Stats> {
  const { since = null, until = null, group_by: groupBy = [] } = query;
  if (since !== null && until !== null && until < since) {
    throw new InvalidRequestError('until: must not lie before since.', 'until');
  }
  return store.readSums(userId, { since, until, groupBy }, async (stored) =>
    write(await statsOf(stored, groupBy)),
  );
}
