import { costMicroUsd } from '../answer/cost.ts';
import { estimatedUsage } from '../answer/estimated-usage.ts';
import type { Usage } from '../answer/usage.ts';
import { noUsage } from '../answer/usage.ts';
import type { AttemptRecord } from '../attempt-record.ts';
import { isGivenUp } from '../attempt-record.ts';
import type { SettledRequest } from '../settled-request.ts';

/** What a request takes of the limits of its user. */
export interface UsedUp {
  /** Input and output. */
  readonly tokens: number;
  /** What it may have cost beyond what its row says, in micro-dollars. */
  readonly unstatedMicroUsd: bigint;
}

/** A model that the tables do not know is taken for the dearest of its provider: it is no way past a budget. */
function costOf(usage: Usage, tried: AttemptRecord | undefined): bigint {
  return costMicroUsd(usage, tried?.candidate.price ?? tried?.candidate.assumedPrice ?? null);
}

const tokensOf = ({ inputTokens, outputTokens }: Usage): number => inputTokens + outputTokens;

/** What was stated of an attempt; of one whose caller gave it up, at least its prompt. */
function usageOf(tried: AttemptRecord, givenUpBytes: number | null): Usage {
  const stated = tried.usage ?? noUsage;
  if (givenUpBytes === null || !isGivenUp(tried)) return stated;
  return estimatedUsage(stated, {
    promptBytes: givenUpBytes,
    answerBytes: 0,
    textBytes: 0,
    unseenMs: 0,
    mostTokens: null,
  });
}

/**
 * All that the attempts of a request used up. A row has what was stated of the one it names, at the price there is;
 * limits take as well what others had stated before they failed, what an answer that was cut may have used up, prompts
 * that were given up, and models without a price.
 */
export function usedUp(settled: SettledRequest): UsedUp {
  const {
    usage: stated,
    cutAnswer,
    givenUpBytes,
    candidates,
    target,
    costMicroUsd: statedMicroUsd,
  } = settled;
  const tried = candidates.filter((record) => record.kind === 'tried');
  const ofRow = tried.findLast(
    ({ candidate }) => candidate.provider === target?.provider && candidate.model === target.model,
  );
  // A request that ended by a bug of ours has a row without what was stated, and counts begin with zeros.
  const own = tokensOf(stated) > 0 || ofRow === undefined ? stated : usageOf(ofRow, givenUpBytes);
  const usage = cutAnswer === null ? own : estimatedUsage(own, cutAnswer);
  let tokens = tokensOf(usage);
  let microUsd = costOf(usage, ofRow);
  for (const other of tried) {
    if (other === ofRow) continue;
    const used = usageOf(other, givenUpBytes);
    tokens += tokensOf(used);
    microUsd += costOf(used, other);
  }
  const unstated = microUsd - statedMicroUsd;
  return { tokens, unstatedMicroUsd: unstated > 0n ? unstated : 0n };
}
