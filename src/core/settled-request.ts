import type { CutAnswer } from './answer/estimated-usage.ts';
import { mostOutputTokens, promptBytes } from './answer/estimated-usage.ts';
import type { Usage } from './answer/usage.ts';
import { noUsage } from './answer/usage.ts';
import type { CandidateRecord } from './attempt-record.ts';
import { isGivenUp } from './attempt-record.ts';
import type { Candidate } from './candidate.ts';
import type { ErrorType } from './errors.ts';
import type { SkippedCandidate } from './plan.ts';
import type { ProviderName } from './provider-name.ts';
import { providerNames } from './provider-name.ts';
import type { ChatCall } from './request/chat-call.ts';
import { modeLabel } from './request/chat-call.ts';
import type { Residency, ResidencyBinder, ResidencyBound } from './request/residency.ts';
import { residencies } from './request/residency.ts';
import type { Price } from './tables/price.ts';

/** What cut an answer that had begun. */
export const cutCauses = ['upstream_error', 'idle_timeout', 'drain_cut'] as const;
export type CutCause = (typeof cutCauses)[number];

/** The error that a request ended with: an upstream's, passed on, is a `provider_error` as well. */
export interface SettledError {
  readonly type: ErrorType;
  readonly message: string;
}

/** How a chat request ended. */
export type RequestEnd =
  | { readonly status: 'success' }
  /** The client left before the end of its answer. */
  | { readonly status: 'client_closed' }
  /** The answer had begun and was cut. */
  | { readonly status: 'incomplete'; readonly cut: CutCause; readonly error: SettledError }
  /** No answer. */
  | { readonly status: 'error'; readonly error: SettledError };

export type RequestStatus = RequestEnd['status'];
export const requestStatuses = Object.keys({
  success: true,
  error: true,
  client_closed: true,
  incomplete: true,
} satisfies Record<RequestStatus, true>) as readonly RequestStatus[];

/** Who answered, as rows, lines and the `gateway` block name it. */
export const answeringProviders = [...providerNames, 'cache'] as const;
export type AnsweringProvider = (typeof answeringProviders)[number];
/** The same of any request: nobody may have been asked. */
export const shownProviders = [...answeringProviders, 'none'] as const;
export type ShownProvider = (typeof shownProviders)[number];

/** Where an answer was produced; one from the cache was produced before. */
export const shownResidencies = [...residencies, 'cache'] as const;
export type ShownResidency = (typeof shownResidencies)[number];

/** A model at a provider. */
export interface Target {
  readonly provider: ProviderName;
  readonly model: string;
}

/** What came of the cache; `bypass`: nothing was looked for, or what was found was not served. */
export const cacheResults = ['hit', 'miss', 'bypass'] as const;
export type CacheResult = (typeof cacheResults)[number];

/** Whose stored answer was served, and which request had made it; nulls where that was not kept. */
export interface CacheOrigin extends Target {
  readonly requestId: string | null;
  readonly traceId: string | null;
}

/**
 * The settlement of one chat request, made exactly once: what SPEC 2.5 shows plus what operators need. The log row,
 * metrics, the access line and spans are made from it.
 */
export interface SettledRequest {
  /** Made by the gateway; the unique key of the row, so that replays insert once. */
  readonly rowId: string;
  readonly userId: string;
  /** The effective X-Request-ID; clients may repeat it. */
  readonly requestId: string;
  /** Microseconds since the epoch, stamped at settlement. */
  readonly createdAtMicros: number;
  /** `gw/cheap` … or `override`. */
  readonly mode: string;
  readonly end: RequestEnd;
  /** Who answered; else who stated usage last, or was tried last. Null where nobody was asked. */
  readonly target: Target | null;
  /** Whose stored answer it was; null unless it came from the cache. */
  readonly cachedFrom: CacheOrigin | null;
  readonly cache: CacheResult;
  /** Which of the caller's keys served; null where none did, or the answer came from the cache. */
  readonly keyId: string | null;
  readonly usage: Usage;
  /** Of an answer without final counts; null: there is nothing to estimate. */
  readonly cutAnswer: CutAnswer | null;
  /** UTF-8 bytes of a prompt that its caller gave up on while it was with a vendor (`isGivenUp`); null: of none. */
  readonly givenUpBytes: number | null;
  /** Whole milliseconds. */
  readonly latencyMs: number;
  /** Whole milliseconds to the first token; null for JSON answers and refusals. */
  readonly ttftMs: number | null;
  readonly costMicroUsd: bigint;
  /** What the cost was made with; null where no answer was priced. */
  readonly price: Price | null;
  /** What a cache hit would have cost; 0 otherwise. */
  readonly savedMicroUsd: bigint;
  readonly stream: boolean;
  /** The column `residency_requested`: bound by whom, says the next one. */
  readonly residencyBound: ResidencyBound;
  /** Null exactly where it was bound to nothing. */
  readonly residencyBoundBy: ResidencyBinder | null;
  readonly residencyActual: ShownResidency;
  /** The candidates of the tier, in its order; null for an override, which has one. */
  readonly tier: readonly Target[] | null;
  /** Those that the plan passed over or moved back. */
  readonly skipped: readonly SkippedCandidate[];
  /** In order: the candidates that were tried, and those that were passed over for what they lack. */
  readonly candidates: readonly CandidateRecord[];
  /** How many of them were tried. */
  readonly tries: number;
  /** Hash of the tables that planned and priced the request. */
  readonly tablesVersion: string;
  readonly traceId: string | null;
}

/** What a settlement says beside how the request ended. */
export interface SettledFacts {
  /** Whole milliseconds. */
  readonly latencyMs: number;
  readonly ttftMs?: number | null;
  readonly usage?: Usage;
  readonly costMicroUsd?: bigint;
  /** What had come of an answer. */
  readonly came?: Pick<CutAnswer, 'answerBytes' | 'textBytes' | 'unseenMs'>;
  readonly savedMicroUsd?: bigint;
  /** Set on a cache hit: who had answered. */
  readonly cachedFrom?: CacheOrigin;
}

/** What became of the candidates. */
interface Tried {
  /** The one of the row. */
  readonly last: Candidate | null;
  /** The one that gave the answer, or began its stream. */
  readonly served: Candidate | null;
  readonly records: readonly CandidateRecord[];
  readonly skipped: readonly SkippedCandidate[];
  readonly tries: number;
}

interface Ended extends Pick<SettledRequest, 'rowId' | 'createdAtMicros' | 'end' | 'cache'> {
  readonly facts: SettledFacts;
}

/** All that is to be said of a request that has ended. */
export function settledRequest(call: ChatCall, tried: Tried, ended: Ended): SettledRequest {
  const { rowId, createdAtMicros, end, cache, facts } = ended;
  const { last, served, records, skipped, tries } = tried;
  const { cachedFrom = null, usage = noUsage } = facts;
  const unasked: Residency = call.options.residency ?? 'global';
  return {
    rowId,
    userId: call.userId,
    requestId: call.requestId,
    createdAtMicros,
    mode: modeLabel(call),
    end,
    target: last,
    cachedFrom,
    cache: cache === 'hit' && cachedFrom === null ? 'bypass' : cache,
    keyId: cachedFrom !== null ? null : (served?.key.id ?? null),
    usage,
    cutAnswer: cutAnswerOf(call, end, facts),
    givenUpBytes: records.some((record) => record.kind === 'tried' && isGivenUp(record))
      ? promptBytes(call.request)
      : null,
    latencyMs: facts.latencyMs,
    ttftMs: facts.ttftMs ?? null,
    costMicroUsd: facts.costMicroUsd ?? 0n,
    price: usage.basis === 'none' ? null : (last?.price ?? null),
    savedMicroUsd: facts.savedMicroUsd ?? 0n,
    stream: call.request.stream === true,
    residencyBound: call.options.residency,
    residencyBoundBy: call.residencyBoundBy,
    residencyActual: cachedFrom !== null ? 'cache' : (last?.residency ?? unasked),
    tier: call.options.override === null ? call.tables.tier(call.tier) : null,
    skipped,
    candidates: records,
    tries,
    tablesVersion: call.tables.hash,
    traceId: call.trace?.traceId ?? null,
  };
}

function cutAnswerOf(
  { request }: ChatCall,
  { status }: SettledRequest['end'],
  { usage, came }: SettledFacts,
): CutAnswer | null {
  if (came === undefined || usage?.basis === 'complete') return null;
  // Of a whole answer that its server never counts, nobody hides anything: some take long before the first token.
  const unseenMs = status === 'success' ? 0 : came.unseenMs;
  return { ...came, unseenMs, promptBytes: promptBytes(request), mostTokens: mostOutputTokens(request) };
}

/** How a request ended, in one word of a closed list: the error's type where there was no answer. */
export function outcomeOf({ end }: SettledRequest): RequestStatus | ErrorType {
  return end.status === 'error' ? end.error.type : end.status;
}

/** The provider as rows and lines show it: `cache` on a hit, `none` where nobody was asked. */
export function shownProvider({ target, cachedFrom }: SettledRequest): ShownProvider {
  return cachedFrom !== null ? 'cache' : (target?.provider ?? 'none');
}

/** The model as rows and lines show it: `provider:model` on a cache hit, `none` where nobody was asked. */
export function shownModel({ target, cachedFrom }: SettledRequest): string {
  return cachedFrom !== null ? targetText(cachedFrom) : (target?.model ?? 'none');
}

export const targetText = ({ provider, model }: Target): string => `${provider}:${model}`;
