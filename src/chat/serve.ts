import { extrasOf } from '../core/answer-extras.ts';
import type { ChatCall } from '../core/chat-call.ts';
import { modeLabel } from '../core/chat-call.ts';
import type { ChatCompletion } from '../core/chat-completion.ts';
import { CompletionAccumulator } from '../core/completion-chunks.ts';
import { costMicroUsd } from '../core/cost.ts';
import { parseExactly } from '../core/exact-json.ts';
import type { AnswerTotals, ChunkIdentity, GatewayMetadata } from '../core/gateway-metadata.ts';
import { doneEvent, gatewayChunk, gatewayMetadata, withGatewayBlock } from '../core/gateway-metadata.ts';
import type { TranslatedAnswer } from '../providers/provider.ts';
import type { Client } from './client-stream.ts';
import { cutStream, vendorAnswer } from './cut-stream.ts';
import type { FallbackIo, Serving } from './fallback.ts';
import { served } from './fallback.ts';
import type { OpenStream } from './open-stream.ts';
import { relay } from './relay.ts';
import { clientClosed, replay } from './replay.ts';
import type { RequestEnd, Settlement } from './settlement.ts';
import type { StoredAnswer } from './stored-answer.ts';
import { storedAnswer } from './stored-answer.ts';

/** A served request: the JSON body still to be sent, or nothing when it was streamed. */
export interface Served {
  readonly json: string | null;
  /** False for a stream that was cut. */
  readonly whole: boolean;
  /** What may be cached: whole and successful answers only. */
  readonly stored: StoredAnswer | null;
  /** A replay that goes on as fast as its client reads; nobody who shares the answer waits for it. */
  readonly sending?: Promise<void>;
}

/** The facts all exits share. */
export interface Serve {
  readonly call: ChatCall;
  readonly settlement: Settlement;
  readonly client: Client;
  readonly io: FallbackIo;
}

function metadataOf(
  { call }: Serve,
  facts: {
    provider: string;
    model: string;
    latencyMs: number;
    cost: bigint;
    residency: 'global' | 'india' | 'cache';
  },
): GatewayMetadata {
  return gatewayMetadata({
    provider: facts.provider,
    model: facts.model,
    mode: modeLabel(call),
    cacheHit: facts.residency === 'cache',
    latencyMs: facts.latencyMs,
    costMicroUsd: facts.cost,
    residencyActual: facts.residency,
    requestId: call.requestId,
  });
}

const wantsUsage = (call: ChatCall): boolean => call.request.stream_options?.include_usage === true;

/** A whole JSON answer: settle, then hand out the body with the gateway block, or stream it where that was asked. */
export async function serveAnswer(serve: Serve, answer: TranslatedAnswer, serving: Serving): Promise<Served> {
  const { call, settlement, client } = serve;
  const { provider, model, price, residency } = serving.candidate;
  const { completion, usage } = answer;
  const cost = costMicroUsd(usage, price);
  const latencyMs = settlement.latencyMs();
  const gone = client.signal.aborted;
  const end: RequestEnd = {
    status: gone ? 'client_closed' : 'success',
    error: gone ? clientClosed : null,
    latencyMs,
    ttftMs: call.request.stream === true ? latencyMs : null,
    usage,
    costMicroUsd: cost,
  };
  const metadata = metadataOf(serve, { provider, model, latencyMs, cost, residency });
  const stored =
    call.options.cacheTtlSeconds === null
      ? null
      : storedAnswer(call, serving.candidate, completion, answer.json, usage, cost);
  if (call.request.stream === true) {
    const wireUsage = usage.basis === 'none' ? null : completion.usage;
    return {
      json: null,
      whole: true,
      stored,
      sending: sendWhole(serve, { completion, bytes: answer.json.length }, wireUsage, metadata, end),
    };
  }
  // Put together first: what throws here must not leave a row that says success.
  const json = withGatewayBlock(answer.json, metadata);
  await settlement.settle(end);
  return { json, whole: true, stored };
}

/** A stream from its first token to its last byte. */
export async function serveStream(serve: Serve, stream: OpenStream, serving: Serving): Promise<Served> {
  const { call, settlement, client, io } = serve;
  const ttftMs = settlement.latencyMs();
  const keep =
    call.options.cacheTtlSeconds === null
      ? null
      : new CompletionAccumulator(call.tables.document.limits.cache_entry_bytes);
  const firstTokenMs = stream.firstTokenAtMs - serving.startedAtMs;
  const relaying = relay(stream, client.stream, keep === null ? null : (bytes) => keep.push(bytes));
  // Written in the same turn.
  io.telemetry.streamOpened(call, io.clock.monotonicMs() - stream.firstTokenAtMs);
  const end = await relaying;
  const { usage, wireUsage } = stream.translator;
  const cost = costMicroUsd(usage, serving.candidate.price);
  const latencyMs = settlement.latencyMs();
  const shared = { latencyMs, ttftMs, usage, costMicroUsd: cost };
  if (end.kind !== 'complete') {
    await cutStream(serve, stream, end, serving, { ...shared, firstTokenMs });
    return { json: null, whole: false, stored: null };
  }
  served(call, serving, settlement.ledger, io, { firstTokenMs, usage, answer: vendorAnswer(stream) });
  const gone = client.signal.aborted;
  await settlement.settle({
    ...shared,
    status: gone ? 'client_closed' : 'success',
    error: gone ? clientClosed : null,
  });
  io.telemetry.streamClosed(gone ? 'client_abort' : 'complete', stream.stalledMs);
  const { provider, model, residency } = serving.candidate;
  const identity = {
    id: stream.translator.id,
    created: stream.translator.created,
    model: stream.translator.model,
  };
  const metadata = metadataOf(serve, { provider, model, latencyMs, cost, residency });
  client.stream.end(
    lastChunks(call, identity, metadata, { usage: wireUsage, extras: stream.translator.extras }),
  );
  const completion = keep?.complete(wireUsage) ?? null;
  const stored =
    completion === null
      ? null
      : storedAnswer(call, serving.candidate, completion, JSON.stringify(completion), usage, cost);
  return { json: null, whole: true, stored };
}

const zeroUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

/** The finish chunk is out; then the gateway chunk, with usage if asked (zeros where none is known), and `[DONE]`. */
function lastChunks(
  call: ChatCall,
  identity: ChunkIdentity,
  metadata: GatewayMetadata,
  { usage, extras }: AnswerTotals,
): string {
  const totals = wantsUsage(call) ? { usage: usage ?? zeroUsage, extras } : null;
  return gatewayChunk(identity, metadata, totals) + doneEvent;
}

/** A cache hit, as JSON or replayed as a stream, whichever the client asked for (SPEC 4.5, routing rule 4). */
export async function serveStored(serve: Serve, answer: StoredAnswer): Promise<Served> {
  const { call, settlement } = serve;
  const cachedFrom = `${answer.provider}:${answer.model}`;
  const latencyMs = settlement.latencyMs();
  const end: RequestEnd = {
    status: 'success',
    error: null,
    latencyMs,
    usage: answer.usage,
    savedMicroUsd: BigInt(answer.costMicroUsd),
    cachedFrom,
  };
  const facts = { provider: 'cache', model: cachedFrom, latencyMs, cost: 0n, residency: 'cache' as const };
  const metadata = metadataOf(serve, facts);
  if (call.request.stream !== true) {
    const json = withGatewayBlock(answer.completionJson, metadata);
    await settlement.settle(end);
    return { json, whole: true, stored: null };
  }
  const completion = parseExactly(answer.completionJson) as ChatCompletion;
  const whole = { completion, bytes: answer.completionJson.length };
  const sending = sendWhole(serve, whole, completion.usage, metadata, end);
  return { json: null, whole: true, stored: null, sending };
}

/** A whole answer as a stream, with the last chunks of one. */
function sendWhole(
  { call, client, settlement, io }: Serve,
  { completion, bytes }: { readonly completion: ChatCompletion; readonly bytes: number },
  usage: unknown,
  metadata: GatewayMetadata,
  end: RequestEnd,
): Promise<void> {
  const last = lastChunks(call, completion, metadata, { usage, extras: extrasOf(completion) });
  const { monotonicMs } = io.clock;
  return replay({ requestId: call.requestId, client, monotonicMs, settlement, completion, bytes, last, end });
}
