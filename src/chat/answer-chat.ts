import type { Candidate, HeldKey } from '../core/candidate.ts';
import type { ChatCall } from '../core/chat-call.ts';
import { costMicroUsd } from '../core/cost.ts';
import { errorEvent } from '../core/error-body.ts';
import { ApiError, draining, GatewayError, ServiceUnavailableError } from '../core/errors.ts';
import { finalError } from '../core/final-error.ts';
import type { Plan, PlannedCandidates } from '../core/plan.ts';
import { planCandidates } from '../core/plan.ts';
import type { Provider } from '../providers/provider.ts';
import type { AnswerCache } from './cached-answer.ts';
import type { Client } from './client-stream.ts';
import type { FallbackIo } from './fallback.ts';
import { AttemptLedger, fallBack } from './fallback.ts';
import type { Account } from './ports.ts';
import { clientClosed } from './replay.ts';
import type { Serve, Served } from './serve.ts';
import { serveAnswer, serveStored, serveStream } from './serve.ts';
import type { SettlementIo } from './settlement.ts';
import { Settlement } from './settlement.ts';
import { overrideError, VerbatimError } from './verbatim-error.ts';

/** What the process gives the story. */
export interface ChatIo extends FallbackIo, SettlementIo {
  readonly cache: AnswerCache;
}

/** The keys of the caller, who may have a hundred: the story takes them out and keeps those of its candidates only. */
export interface KeyHolder {
  keys: readonly HeldKey[];
}

/** Reads the caller's keys past the cache. */
export type RefreshAccount = () => Promise<Account | null>;

/** The client left before there was anything to send it. */
export class ClientGoneError extends Error {}

/**
 * The whole story of one chat request: plan → cache → candidates → answer → settlement. Read this first.
 * Returns the JSON body, or null when the answer was streamed. Throws GatewayError or VerbatimError while
 * nothing has been sent, ClientGoneError when there is nobody to send it to.
 */
export async function answerChat(
  call: ChatCall,
  holder: KeyHolder,
  client: Client,
  io: ChatIo,
  refresh: RefreshAccount,
): Promise<string | null> {
  const settlement = new Settlement(call, new AttemptLedger(), io);
  try {
    const { json, sending } = await tellStory(call, holder, { call, settlement, client, io }, io, refresh);
    await sending;
    return json;
  } catch (thrown) {
    if (isExpected(thrown)) throw thrown;
    return await endByBug(thrown, call, client, settlement, io);
  }
}

async function tellStory(
  call: ChatCall,
  holder: KeyHolder,
  serve: Serve,
  io: ChatIo,
  refresh: RefreshAccount,
): Promise<Served> {
  const { settlement, client } = serve;
  const plan = await planCall(call, takeKeys(holder), io, refresh);
  if (plan.kind === 'refused') throw await settleError(settlement, plan.error);
  io.telemetry.candidatesSkipped(call, plan.skipped);
  const { cacheTtlSeconds } = call.options;
  const tryAll = (signal: AbortSignal) => tryCandidates(serve, io, plan, signal);
  if (cacheTtlSeconds === null) {
    io.telemetry.cacheAnswered(call, 'bypass', null);
    return tryAll(client.signal);
  }
  const boarding = io.cache.board(call, plan.candidates, cacheTtlSeconds, client.signal);
  const seat = await boarding.catch((cause: unknown) => {
    if (client.signal.aborted) return null;
    throw cause;
  });
  // The client left while waiting: the row is written on the way out.
  if (seat === null) return tryAll(client.signal);
  let served: Served | null = null;
  try {
    io.telemetry.cacheAnswered(call, seat.kind, seat.kind === 'hit' ? seat.answer : null);
    served = seat.kind === 'hit' ? await serveStored(serve, seat.answer) : await tryAll(seat.signal);
    return served;
  } finally {
    if (seat.kind === 'miss') {
      if (served?.whole === true) seat.land(served.stored);
      else seat.fail();
    }
  }
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
async function endByBug(
  cause: unknown,
  call: ChatCall,
  client: Client,
  settlement: Settlement,
  io: ChatIo,
): Promise<null> {
  const error = await settleError(settlement, cause instanceof ApiError ? cause : new ApiError(cause));
  // Whoever writes the 500 tells of it.
  if (!client.stream.isOpen) throw error;
  io.reportBug(error.cause, call);
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
async function planCall(
  call: ChatCall,
  keys: readonly HeldKey[],
  io: ChatIo,
  refresh: RefreshAccount,
): Promise<Plan> {
  const input = {
    isCooled: (candidate: Candidate) => io.cooldown.isCooled(candidate),
    lacks: ({ provider, facts }: Candidate) => (io.providers[provider] as Provider).lacks(facts),
  };
  const plan = planCandidates(call, { ...input, keys });
  if (plan.kind === 'planned' || !plan.forWantOfKey) return plan;
  const fresh = await refresh().catch((cause: unknown) => {
    // The first plan stands while Postgres is away; any other cause is a bug that nobody else would hear of.
    if (!(cause instanceof ServiceUnavailableError)) io.reportBug(cause, call);
    return null;
  });
  return fresh === null ? plan : planCandidates(call, { ...input, keys: fresh.keys });
}

async function tryCandidates(
  serve: Serve,
  io: ChatIo,
  plan: PlannedCandidates,
  signal: AbortSignal,
): Promise<Served> {
  const { call, settlement } = serve;
  const result = await fallBack(call, plan, settlement.ledger, io, signal);
  switch (result.kind) {
    case 'answered':
      return serveAnswer(serve, result.answer, result.serving);
    case 'stream-opened':
      return serveStream(serve, result.stream, result.serving);
    case 'cancelled': {
      const { usage, candidate } = result;
      settlement.spent(usage, costMicroUsd(usage, candidate.price));
      if (result.reason === 'drain') throw await settleError(settlement, draining());
      await settlement.settle({
        status: 'client_closed',
        error: clientClosed,
        latencyMs: settlement.latencyMs(),
      });
      throw new ClientGoneError();
    }
    case 'exhausted': {
      const [only] = result.failures;
      const error =
        call.options.override !== null && only !== undefined
          ? overrideError(only)
          : finalError(result.failures, settlement.ledger.reports);
      throw await settleError(settlement, error, only?.reason);
    }
  }
}

/** Writes the row of a request that fails, and hands back what to throw. */
async function settleError<E extends GatewayError | VerbatimError>(
  settlement: Settlement,
  error: E,
  reason?: string,
): Promise<E> {
  const text =
    error instanceof VerbatimError
      ? `provider_error: upstream ${error.status}: ${reason ?? ''}`
      : `${(error as GatewayError).type}: ${error.message}`;
  await settlement.settle({ status: 'error', error: text, latencyMs: settlement.latencyMs() });
  return error;
}
