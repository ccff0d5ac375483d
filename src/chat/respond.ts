import { extrasOf } from '../core/answer/answer-extras.ts';
import type { ChatCompletion } from '../core/answer/chat-completion.ts';
import { noWireUsage } from '../core/answer/chat-completion.ts';
import { costMicroUsd, formatMicroUsd } from '../core/answer/cost.ts';
import type { AnswerTotals, ChunkIdentity, GatewayMetadata } from '../core/answer/gateway-metadata.ts';
import { gatewayChunk, withGatewayBlock } from '../core/answer/gateway-metadata.ts';
import type { JsonAnswer } from '../core/answer/json-answer.ts';
import { jsonAnswer } from '../core/answer/json-answer.ts';
import { doneFrame } from '../core/answer/sse-frame.ts';
import type { Candidate } from '../core/candidate.ts';
import { errorEvent } from '../core/error-body.ts';
import { parseExactly } from '../core/json/exact-json.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import { modeLabel } from '../core/request/chat-call.ts';
import type { AnsweringProvider, RequestEnd, SettledFacts, ShownResidency } from '../core/settled-request.ts';
import { targetText } from '../core/settled-request.ts';
import type { TranslatedAnswer } from '../providers/provider.ts';
import type { Client } from './client-stream.ts';
import { KeptAnswer } from './kept-answer.ts';
import type { OpenAttempt } from './open-attempt.ts';
import type { OpenStream } from './open-stream.ts';
import { relay } from './relay.ts';
import { replay } from './replay.ts';
import type { RequestContext } from './request-context.ts';
import type { ClosedStream, StreamFacts } from './settle-stream.ts';
import { settleStream } from './settle-stream.ts';
import type { StoredAnswer } from './stored-answer.ts';
import { storedAnswer } from './stored-answer.ts';

/** What the client gets. `stored` is what may be cached of a whole answer; null: nothing. */
export type ChatResponse =
  /** A body still to be sent. */
  | { readonly kind: 'json'; readonly answer: JsonAnswer; readonly stored: StoredAnswer | null }
  /** A stream of its vendor's that was sent. */
  | { readonly kind: 'streamed'; readonly stored: StoredAnswer | null }
  /** A whole answer that goes out as fast as its client reads; nobody who shares it waits for `sending`. */
  | { readonly kind: 'replayed'; readonly sending: Promise<void>; readonly stored: StoredAnswer | null }
  /** A stream that came to no good end. */
  | { readonly kind: 'cut' };

const cut: ChatResponse = { kind: 'cut' };

function metadataOf(
  { call }: RequestContext,
  facts: {
    provider: AnsweringProvider;
    model: string;
    latencyMs: number;
    cost: bigint;
    residency: ShownResidency;
  },
): GatewayMetadata {
  return {
    provider: facts.provider,
    model: facts.model,
    mode: modeLabel(call),
    cache_hit: facts.residency === 'cache',
    latency_ms: facts.latencyMs,
    cost_usd: formatMicroUsd(facts.cost),
    residency_actual: facts.residency,
    request_id: call.requestId,
  };
}

const wantsUsage = (call: ChatCall): boolean => call.request.stream_options?.include_usage === true;

/** How a request ends whose whole answer is here. */
const wholeEnd = (client: Client): RequestEnd => ({
  status: client.signal.reason === 'client-gone' ? 'client_closed' : 'success',
});

/** A whole JSON answer: settle, then hand out the body with the gateway block, or stream it where that was asked. */
export async function respondWithAnswer(
  context: RequestContext,
  answer: TranslatedAnswer,
  candidate: Candidate,
): Promise<ChatResponse> {
  const { call, settlement, client } = context;
  const { provider, model, price, residency } = candidate;
  const { completion, usage } = answer;
  const cost = costMicroUsd(usage, price);
  const latencyMs = settlement.latencyMs();
  const ttftMs = call.request.stream === true ? latencyMs : null;
  const came = { answerBytes: answer.bytes, textBytes: answer.bytes, unseenMs: 0 };
  const facts: SettledFacts = { latencyMs, ttftMs, usage, costMicroUsd: cost, came };
  const metadata = metadataOf(context, { provider, model, latencyMs, cost, residency });
  const stored =
    call.options.cacheTtlSeconds === null
      ? null
      : storedAnswer(call, candidate, completion, answer, usage, cost);
  if (call.request.stream === true) {
    const wireUsage = usage.basis === 'none' ? null : completion.usage;
    const sending = sendWhole(context, { completion, bytes: answer.bytes }, wireUsage, metadata, facts);
    return { kind: 'replayed', sending, stored };
  }
  // Put together first: what throws here must not leave a row that says success.
  const whole = withGatewayBlock(answer, metadata);
  await settlement.settle(wholeEnd(client), facts);
  return { kind: 'json', answer: whole, stored };
}

/** A stream from its first token to its last byte. */
export async function respondWithStream(
  context: RequestContext,
  stream: OpenStream,
  attempt: OpenAttempt,
): Promise<ChatResponse> {
  const { call, deps } = context;
  const keep = call.options.cacheTtlSeconds === null ? null : new KeptAnswer(call, deps.answers.kept);
  try {
    return await relayAndSettle(context, stream, attempt, keep);
  } finally {
    keep?.release();
  }
}

async function relayAndSettle(
  context: RequestContext,
  stream: OpenStream,
  attempt: OpenAttempt,
  keep: KeptAnswer | null,
): Promise<ChatResponse> {
  const { call, settlement, client, deps } = context;
  const ttftMs = settlement.latencyMs();
  const relaying = relay(stream, client.stream, keep === null ? null : (bytes) => keep.push(bytes));
  // Written in the same turn.
  deps.telemetry.streamOpened(call, deps.clock.monotonicMs() - stream.firstTokenAtMs);
  let facts: StreamFacts;
  let closed: ClosedStream | null = null;
  try {
    const end = await relaying;
    const { usage, textBytes } = stream.translator;
    const firstTokenMs = stream.firstTokenAtMs - attempt.startedAtMs;
    facts = {
      latencyMs: settlement.latencyMs(),
      ttftMs,
      firstTokenMs,
      usage,
      costMicroUsd: costMicroUsd(usage, attempt.candidate.price),
      came: { answerBytes: stream.answerBytes, textBytes, unseenMs: firstTokenMs },
    };
    closed = await settleStream(context, stream, end, attempt, facts);
  } finally {
    // Null: a bug left no other end behind.
    deps.telemetry.streamClosed(closed?.ending ?? 'upstream_error', stream.stalledMs);
  }
  switch (closed.kind) {
    case 'whole':
      return endStream(context, stream, attempt.candidate, facts, keep);
    case 'cut':
      client.stream.end(errorEvent(closed.error, call.requestId));
      return cut;
    case 'left':
      client.stream.destroy();
      return cut;
  }
}

/** The last bytes of a whole stream, which is settled. */
function endStream(
  context: RequestContext,
  { translator }: OpenStream,
  candidate: Candidate,
  { latencyMs, usage, costMicroUsd: cost }: StreamFacts,
  keep: KeptAnswer | null,
): ChatResponse {
  const { call, client } = context;
  const { provider, model, residency } = candidate;
  const { id, created, wireUsage, extras } = translator;
  const metadata = metadataOf(context, { provider, model, latencyMs, cost, residency });
  const identity = { id, created, model: translator.model };
  const totals = { usage: wireUsage, extras };
  client.stream.end(lastChunks(call, identity, metadata, totals));
  const completion = keep?.complete(totals) ?? null;
  const stored =
    completion === null
      ? null
      : storedAnswer(call, candidate, completion, jsonAnswer(completion), usage, cost);
  return { kind: 'streamed', stored };
}

/** The finish chunk is out; then the gateway chunk, with usage if asked (zeros where none is known), and `[DONE]`. */
function lastChunks(
  call: ChatCall,
  identity: ChunkIdentity,
  metadata: GatewayMetadata,
  { usage, extras }: AnswerTotals,
): string {
  const asked = wantsUsage(call) ? (usage ?? noWireUsage) : undefined;
  return gatewayChunk(identity, metadata, { usage: asked, extras }) + doneFrame;
}

/**
 * A cache hit, as JSON or replayed as a stream, whichever the client asked for (SPEC 4.5, routing rule 4). Null when
 * there is no room for it: a hit costs nobody anything, and hundreds of them can come at once.
 */
export function respondFromCache(
  context: RequestContext,
  answer: StoredAnswer,
): Promise<ChatResponse> | null {
  const { call, room } = context;
  const { bytes } = answer.completion;
  const hasRoom = call.request.stream === true ? room.countParsed(bytes, answer.values) : room.count(bytes);
  return hasRoom ? sendFromCache(context, answer) : null;
}

async function sendFromCache(context: RequestContext, answer: StoredAnswer): Promise<ChatResponse> {
  const { call, settlement } = context;
  const { provider, model, usage, requestId, traceId } = answer;
  const latencyMs = settlement.latencyMs();
  const facts: SettledFacts = {
    latencyMs,
    usage,
    savedMicroUsd: BigInt(answer.costMicroUsd),
    cachedFrom: { provider, model, requestId, traceId },
  };
  const metadata = metadataOf(context, {
    provider: 'cache',
    model: targetText(answer),
    latencyMs,
    cost: 0n,
    residency: 'cache',
  });
  if (call.request.stream !== true) {
    const whole = withGatewayBlock(answer.completion, metadata);
    await settlement.settle(wholeEnd(context.client), facts);
    return { kind: 'json', answer: whole, stored: null };
  }
  const { json, bytes } = answer.completion;
  const whole = { completion: parseExactly(json) as ChatCompletion, bytes };
  const sending = sendWhole(context, whole, whole.completion.usage, metadata, facts);
  return { kind: 'replayed', sending, stored: null };
}

/** A whole answer as a stream, with the last chunks of one. */
function sendWhole(
  context: RequestContext,
  { completion, bytes }: { readonly completion: ChatCompletion; readonly bytes: number },
  usage: unknown,
  metadata: GatewayMetadata,
  facts: SettledFacts,
): Promise<void> {
  const totals = { usage, extras: extrasOf(completion) };
  const last = lastChunks(context.call, completion, metadata, totals);
  return replay(context, { completion, bytes, last, facts });
}
