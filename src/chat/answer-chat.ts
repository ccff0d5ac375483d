import type { JsonAnswer } from '../core/answer/json-answer.ts';
import { attemptReport } from '../core/attempt-record.ts';
import type { Candidate, HeldKey } from '../core/candidate.ts';
import { errorEvent } from '../core/error-body.ts';
import { ApiError, draining, GatewayError, noRoom } from '../core/errors.ts';
import { finalError } from '../core/final-error.ts';
import type { Plan, PlannedCandidates } from '../core/plan.ts';
import { planCandidates } from '../core/plan.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import { StoreAway } from '../core/store-away.ts';
import { AnswerHold } from './answer-budget.ts';
import type { CacheLookup, CacheMiss } from './answer-cache.ts';
import type { CancelSignal } from './cancellation.ts';
import type { ChatDeps } from './chat-deps.ts';
import type { Client } from './client-stream.ts';
import { fallBack } from './fallback.ts';
import type { Account } from './ports.ts';
import type { RequestContext } from './request-context.ts';
import type { ChatResponse } from './respond.ts';
import { respondFromCache, respondWithAnswer, respondWithStream } from './respond.ts';
import { Settlement } from './settlement.ts';
import { overrideError, VerbatimError } from './verbatim-error.ts';

/** The keys of the caller, who may have a hundred: the story takes them out and keeps those of its candidates only. */
export interface KeyHolder {
  keys: readonly HeldKey[];
}

/** Reads the caller's keys past the cache. */
export type RefreshAccount = () => Promise<Account | null>;

/** The client left before there was anything to send it. */
export class ClientGoneError extends Error {}

/**
 * Answers one chat request. Resolves with the JSON answer, or with null when the answer was streamed. Rejects with
 * GatewayError or VerbatimError while nothing has been sent, with ClientGoneError when there is nobody to send it to.
 */
export type AnswerChat = (
  call: ChatCall,
  holder: KeyHolder,
  client: Client,
  refresh: RefreshAccount,
) => Promise<JsonAnswer | null>;

/** The whole story of a chat request: plan → cache → candidates → answer → settlement. Read this first. */
export function createChat(deps: ChatDeps): AnswerChat {
  return async (call, holder, client, refresh) => {
    const room = new AnswerHold(deps.answers, call.userId, false);
    const context = { call, client, settlement: new Settlement(call, deps), deps, room };
    try {
      const planned = planCall(call, takeKeys(holder), deps, refresh);
      // Hardly ever a promise, and each that is awaited costs a turn of the queue and some objects.
      const plan = planned instanceof Promise ? await planned : planned;
      context.settlement.ledger.skipped = plan.skipped;
      if (plan.kind === 'refused') throw await settleError(context.settlement, plan.error);
      deps.telemetry.planned(call, plan.skipped);
      const response = await respond(context, plan);
      if (response.kind === 'json') return response.answer;
      if (response.kind === 'replayed') await response.sending;
      return null;
    } catch (thrown) {
      if (isExpected(thrown)) throw thrown;
      return await endByBug(thrown, context);
    } finally {
      room.count(0);
    }
  };
}

function respond(context: RequestContext, plan: PlannedCandidates): Promise<ChatResponse> {
  const { call, client } = context;
  const { cacheTtlSeconds } = call.options;
  if (cacheTtlSeconds === null) return tryCandidates(context, plan, client.signal);
  const found = context.deps.cache.join(call, plan.candidates, cacheTtlSeconds, client.signal);
  return found instanceof Promise
    ? found.then((lookup) => respondAsFound(context, plan, lookup))
    : respondAsFound(context, plan, found);
}

/** Not async by itself: a promise that one hands out takes three turns of the queue. */
function respondAsFound(
  context: RequestContext,
  plan: PlannedCandidates,
  lookup: CacheLookup | null,
): Promise<ChatResponse> {
  const { call, client, settlement, deps } = context;
  // The client left while waiting: the row is written on the way out.
  if (lookup === null) return tryCandidates(context, plan, client.signal);
  settlement.cache = lookup.kind;
  if (lookup.kind === 'miss') return respondAndStore(context, plan, lookup);
  deps.telemetry.cacheHit(call, lookup.answer);
  return respondFromCache(context, lookup.answer) ?? refuseForRoom(settlement);
}

async function respondAndStore(
  context: RequestContext,
  plan: PlannedCandidates,
  lookup: CacheMiss,
): Promise<ChatResponse> {
  let response: ChatResponse | null = null;
  try {
    response = await tryCandidates(context, plan, lookup.signal);
    return response;
  } finally {
    if (response === null || response.kind === 'cut') lookup.reject();
    else lookup.resolve(response.stored);
  }
}

/** Knows nothing of the answer: while its row is written, nobody keeps it. */
async function refuseForRoom(settlement: Settlement): Promise<never> {
  throw await settleError(settlement, noRoom());
}

/** What the story throws on purpose has been settled. */
function isExpected(thrown: unknown): boolean {
  return (
    (thrown instanceof GatewayError && !(thrown instanceof ApiError)) ||
    thrown instanceof VerbatimError ||
    thrown instanceof ClientGoneError
  );
}

/**
 * Whatever else is thrown is a bug of ours, wherever it is: the request has its one row and comes to an end, as a
 * 500 or, once its stream is open, by an error event.
 */
async function endByBug(cause: unknown, { call, client, settlement, deps }: RequestContext): Promise<null> {
  const error = await settleError(settlement, cause instanceof ApiError ? cause : new ApiError(cause));
  // Whoever writes the 500 reports it.
  if (!client.stream.isOpen) throw error;
  deps.reportBug(error.cause, call);
  client.stream.end(errorEvent(error, call.requestId));
  return null;
}

/** An account of its own for each waiting request, one that is too large to be kept or has just changed, adds up. */
function takeKeys(holder: KeyHolder): readonly HeldKey[] {
  const { keys } = holder;
  holder.keys = [];
  return keys;
}

/** Plans, and once more with fresh keys when the plan failed for want of a key: it may be a second old. */
function planCall(
  call: ChatCall,
  keys: readonly HeldKey[],
  deps: ChatDeps,
  refresh: RefreshAccount,
): Plan | Promise<Plan> {
  const planWith = (held: readonly HeldKey[]): Plan =>
    planCandidates(call, {
      keys: held,
      isHeldBack: (candidate: Candidate) => deps.breakers.holdsBack(candidate),
      lacks: ({ provider, facts }: Candidate) => deps.providers[provider].lacks(facts),
    });
  const plan = planWith(keys);
  if (plan.kind === 'planned' || !plan.forWantOfKey) return plan;
  return refresh().then(
    (fresh) => (fresh === null ? plan : planWith(fresh.keys)),
    (cause: unknown) => {
      // The first plan stands while Postgres is away; any other cause is a bug that nobody else would report.
      if (!(cause instanceof StoreAway)) deps.reportBug(cause, call);
      return plan;
    },
  );
}

async function tryCandidates(
  context: RequestContext,
  plan: PlannedCandidates,
  signal: CancelSignal,
): Promise<ChatResponse> {
  const { call, settlement, deps, room } = context;
  const result = await fallBack(call, plan.candidates, settlement.ledger, deps, signal, room);
  switch (result.kind) {
    case 'answered':
      return await respondWithAnswer(context, result.answer, result.candidate);
    case 'stream-opened':
      return await respondWithStream(context, result.stream, result.attempt);
    case 'cancelled': {
      settlement.spentInVain();
      if (result.reason === 'drain') throw await settleError(settlement, draining());
      await settlement.settle({ status: 'client_closed' });
      throw new ClientGoneError();
    }
    case 'exhausted': {
      const [only] = result.failures;
      settlement.spentInVain();
      const error =
        call.options.override !== null && only !== undefined
          ? overrideError(only)
          : finalError(result.failures, settlement.ledger.records.map(attemptReport));
      throw await settleError(settlement, error, only?.reason);
    }
  }
}

/** Settles a request that fails, and hands back what to throw. */
async function settleError<E extends GatewayError | VerbatimError>(
  settlement: Settlement,
  error: E,
  reason = '',
): Promise<E> {
  const settled =
    error instanceof GatewayError
      ? error
      : ({ type: 'provider_error', message: `upstream ${error.status}: ${reason}` } as const);
  await settlement.settle({ status: 'error', error: settled });
  return error;
}
