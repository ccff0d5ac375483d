import type { Candidate } from '../core/candidate.ts';
import type { ChatCall } from '../core/chat-call.ts';
import type { AttemptFailure, FailureKind, UpstreamReply } from '../core/outcome.ts';
import { redactReason } from '../core/redact.ts';
import { residencyAllows } from '../core/residency.ts';
import type { Secret } from '../core/secret.ts';
import type {
  Provider,
  StreamContext,
  StreamTranslator,
  TranslatedAnswer,
  UpstreamError,
  UpstreamRequest,
} from '../providers/provider.ts';
import type { CancelReason } from './client-stream.ts';
import type { Endpoints } from './endpoints.ts';
import { Exchange } from './exchange.ts';
import type { ExchangeEnd, OpenStream } from './open-stream.ts';
import type { Clock, OpenKey, TransportFailureKind, UpstreamCall, UpstreamTransport } from './ports.ts';

/** What an attempt needs of the world. */
export interface AttemptIo {
  readonly transport: UpstreamTransport;
  readonly providers: Readonly<Record<string, Provider>>;
  readonly endpoints: Endpoints;
  readonly openKey: OpenKey;
  readonly clock: Clock;
  readonly newId: () => string;
  /** Keys whose server refused `stream_options`, remembered so that it is asked only once. */
  readonly withoutStreamOptions: { has(keyId: string): boolean; add(keyId: string): void };
}

export type AttemptOutcome =
  | { readonly kind: 'answered'; readonly answer: TranslatedAnswer; readonly dropped: readonly string[] }
  | { readonly kind: 'stream-opened'; readonly stream: OpenStream; readonly dropped: readonly string[] }
  | { readonly kind: 'failed'; readonly failure: AttemptFailure; readonly dropped: readonly string[] }
  | { readonly kind: 'cancelled'; readonly reason: CancelReason; readonly dropped: readonly string[] };

/** One try, prepared: the plaintext key lives in here and nowhere else. */
interface Prepared {
  readonly call: ChatCall;
  readonly candidate: Candidate;
  readonly provider: Provider;
  readonly context: StreamContext;
  readonly secret: Secret;
  readonly startedAtMs: number;
  readonly requestDueMs: number;
}

/**
 * One call to one candidate, up to the whole answer (JSON) or the first token (stream). Expected failures
 * are values. It sends a second time in two cases only: a kept-alive socket that the vendor had already
 * closed, and a self-hosted server that refuses `stream_options`.
 */
export async function attempt(
  candidate: Candidate,
  call: ChatCall,
  io: AttemptIo,
  requestDueMs: number,
  signal: AbortSignal,
): Promise<AttemptOutcome> {
  const startedAtMs = io.clock.monotonicMs();
  const provider = io.providers[candidate.provider] as Provider;
  let secret: Secret;
  try {
    secret = io.openKey(candidate.key);
  } catch {
    return unopenedKey();
  }
  const context: StreamContext = {
    model: candidate.model,
    facts: candidate.facts,
    withoutStreamOptions: io.withoutStreamOptions.has(candidate.key.id),
    fallbackId: `chatcmpl-${io.newId()}`,
    createdSeconds: Math.floor(io.clock.wallMs() / 1000),
    maxEventBytes: call.tables.document.limits.event_bytes,
  };
  const prepared = { call, candidate, provider, context, secret, startedAtMs, requestDueMs };
  let sent = await send(prepared, io, signal);
  if (sent.end.kind === 'transport' && sent.end.failure.staleSocket) sent = await send(prepared, io, signal);
  if (sent.end.kind === 'replied' && asksWithoutStreamOptions(prepared, sent.end)) {
    io.withoutStreamOptions.add(candidate.key.id);
    sent = await send({ ...prepared, context: { ...context, withoutStreamOptions: true } }, io, signal);
  }
  return judge(prepared, sent, io);
}

interface Sent {
  readonly end: ExchangeEnd;
  readonly translator: StreamTranslator | null;
  readonly dropped: readonly string[];
}

function unopenedKey(): AttemptOutcome {
  const failure: AttemptFailure = {
    kind: 'key-rejected',
    status: null,
    reason: 'The stored provider key cannot be opened; register it again.',
    retryAfterMs: null,
    latencyMs: 0,
    reply: null,
    blamesCandidate: false,
    blamesProvider: false,
  };
  return { kind: 'failed', failure, dropped: [] };
}

function asksWithoutStreamOptions(prepared: Prepared, end: { status: number; body: Buffer }): boolean {
  return (
    prepared.call.request.stream === true &&
    !prepared.context.withoutStreamOptions &&
    end.status !== 200 &&
    prepared.provider.refusesStreamOptions(end.status, end.body)
  );
}

function upstreamCall(prepared: Prepared, io: AttemptIo, request: UpstreamRequest): UpstreamCall {
  const { candidate, provider, call, secret } = prepared;
  const endpoint = io.endpoints.of(candidate);
  return {
    origin: endpoint.origin,
    path: endpoint.prefix + request.path,
    headers: {
      'content-type': 'application/json',
      accept: call.request.stream === true ? 'text/event-stream' : 'application/json',
      'accept-encoding': 'identity',
      ...request.headers,
      ...provider.authHeaders(secret.reveal()),
    },
    body: request.body,
    residency: candidate.residency,
    residencyRequested: call.options.residency,
    userAddress: candidate.key.baseUrl !== null,
  };
}

function send(prepared: Prepared, io: AttemptIo, signal: AbortSignal): Promise<Sent> {
  const { call, candidate, provider, context, startedAtMs, requestDueMs } = prepared;
  // Checked again where the socket is about to be opened, whatever the plan said.
  if (!residencyAllows(call.options.residency, candidate.residency)) {
    throw new Error('A candidate outside the requested residency reached an attempt.');
  }
  const request = provider.translateRequest(call.request, context);
  const translator = call.request.stream === true ? provider.streamTranslator(context) : null;
  const limitMs = call.options.timeoutMs ?? call.tables.document.timeouts.attempt_seconds * 1000;
  return new Promise((resolve) => {
    const job = {
      call,
      candidate,
      upstreamCall: upstreamCall(prepared, io, request),
      translator,
      attemptDueMs: startedAtMs + limitMs,
      requestDueMs,
      startedAtMs,
      monotonicMs: io.clock.monotonicMs,
      signal,
    };
    const settle = (end: ExchangeEnd) => resolve({ end, translator, dropped: request.dropped });
    new Exchange(job, settle).start(io.transport);
  });
}

function judge(prepared: Prepared, sent: Sent, io: AttemptIo): AttemptOutcome {
  const { end, dropped } = sent;
  const fail = (failure: Omit<AttemptFailure, 'latencyMs'>): AttemptOutcome => {
    const latencyMs = Math.round(io.clock.monotonicMs() - prepared.startedAtMs);
    const reason = redactReason(failure.reason, prepared.secret.reveal());
    return { kind: 'failed', failure: { ...failure, reason, latencyMs }, dropped };
  };
  switch (end.kind) {
    case 'streaming':
      return { kind: 'stream-opened', stream: end.stream, dropped };
    case 'cancelled':
      return { kind: 'cancelled', reason: end.reason, dropped };
    case 'timed-out':
      return fail(timeoutFailure(prepared, end.afterMs));
    case 'transport':
      return fail(transportFailure(end.failure.kind, end.failure.message));
    case 'stream-failed':
      return fail(failureOf(sent.translator?.failure ?? null, 200, null));
    case 'replied':
      return judgeReply(prepared, { status: end.status, headers: end.headers, body: end.body }, io, dropped, fail);
  }
}

function judgeReply(
  prepared: Prepared,
  reply: UpstreamReply,
  io: AttemptIo,
  dropped: readonly string[],
  fail: (failure: Omit<AttemptFailure, 'latencyMs'>) => AttemptOutcome,
): AttemptOutcome {
  const { provider, context, call } = prepared;
  if (reply.status !== 200) {
    const error = provider.readError(reply.status, reply.headers, reply.body, io.clock.wallMs());
    return fail(failureOf(error, reply.status, reply));
  }
  if (call.request.stream === true) return fail(unreadable('The answer to a stream request is no event stream.'));
  const answer = provider.translateAnswer(reply.body, context);
  if (answer.kind === 'unreadable') return fail(unreadable(answer.reason));
  return { kind: 'answered', answer, dropped };
}

function unreadable(reason: string): Omit<AttemptFailure, 'latencyMs'> {
  return {
    kind: 'unreadable',
    status: 200,
    reason,
    retryAfterMs: null,
    reply: null,
    blamesCandidate: true,
    blamesProvider: false,
  };
}

function failureOf(
  error: UpstreamError | null,
  status: number,
  reply: UpstreamReply | null,
): Omit<AttemptFailure, 'latencyMs'> {
  const kind: FailureKind = error?.kind ?? 'upstream-failed';
  return {
    kind,
    status,
    reason: error?.message ?? `The upstream failed with status ${status}.`,
    retryAfterMs: error?.retryAfterMs ?? null,
    reply,
    blamesCandidate: kind === 'upstream-failed' || kind === 'key-rejected' || kind === 'not-found',
    blamesProvider: kind === 'upstream-failed' && status >= 500,
  };
}

/** A limit shorter than the default is the client's choice and never counts against the candidate. */
function timeoutFailure(prepared: Prepared, afterMs: number): Omit<AttemptFailure, 'latencyMs'> {
  const defaultMs = prepared.call.tables.document.timeouts.attempt_seconds * 1000;
  return {
    kind: 'timed-out',
    status: null,
    reason: `No answer within ${(afterMs / 1000).toFixed(1)} s.`,
    retryAfterMs: null,
    reply: null,
    blamesCandidate: afterMs >= defaultMs,
    blamesProvider: false,
  };
}

function transportFailure(kind: TransportFailureKind, message: string): Omit<AttemptFailure, 'latencyMs'> {
  const connects = kind === 'connect-refused' || kind === 'connect-timeout' || kind === 'dns';
  return {
    kind: kind === 'too-large' || kind === 'protocol' ? 'unreadable' : 'unreachable',
    status: null,
    reason: message,
    retryAfterMs: null,
    reply: null,
    blamesCandidate: kind !== 'forbidden-address',
    blamesProvider: connects,
  };
}
