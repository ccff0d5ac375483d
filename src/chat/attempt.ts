import type { Candidate } from '../core/candidate.ts';
import type { ChatCall } from '../core/chat-call.ts';
import { attemptLimitMs } from '../core/chat-call.ts';
import { maskEcho } from '../core/mask-echo.ts';
import { redactReason } from '../core/redact.ts';
import { residencyAllows } from '../core/residency.ts';
import type { Secret } from '../core/secret.ts';
import type { Provider, StreamContext, UpstreamRequest } from '../providers/provider.ts';
import type { AnswerBudget } from './answer-budget.ts';
import type { Endpoint } from './endpoints.ts';
import { Exchange } from './exchange.ts';
import type { AttemptOutcome, Sent, Tried } from './judgement.ts';
import { judge, unopenedKey } from './judgement.ts';
import type { ExchangeEnd } from './open-stream.ts';
import type { Clock, OpenKey, UpstreamCall, UpstreamTransport } from './ports.ts';
import type { ChatTelemetry } from './telemetry-port.ts';

/** What an attempt needs of the world. */
export interface AttemptIo {
  readonly transport: UpstreamTransport;
  readonly providers: Readonly<Record<string, Provider>>;
  readonly endpointOf: (candidate: Candidate) => Endpoint;
  readonly openKey: OpenKey;
  /** Told of a stored key that does not open: tampered with, or sealed with a key that is gone. */
  readonly reportUnopenedKey: (keyId: string, call: ChatCall) => void;
  readonly clock: Clock;
  readonly newId: () => string;
  /** What large answers may take of the memory, and take now. */
  readonly answers: AnswerBudget;
  readonly telemetry: Pick<ChatTelemetry, 'attemptSent' | 'answerBegan' | 'streamStalled'>;
  /** Keys whose server refused `stream_options`, remembered so that it is asked only once. */
  readonly withoutStreamOptions: { has(keyId: string): boolean; add(keyId: string): void };
}

/** One try, prepared: the plaintext key lives in here and nowhere else. */
interface Prepared extends Tried {
  readonly candidate: Candidate;
  readonly endpoint: Endpoint;
  readonly requestDueMs: number;
}

/**
 * One call to one candidate, up to the whole answer (JSON) or the first token (stream). Expected failures
 * are values. It sends a second time in one case only: to a self-hosted server that refuses `stream_options`.
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
  let endpoint: Endpoint;
  let secret: Secret;
  try {
    endpoint = io.endpointOf(candidate);
    secret = io.openKey(candidate.key);
  } catch {
    io.reportUnopenedKey(candidate.key.id, call);
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
  const prepared = { call, candidate, endpoint, provider, context, secret, startedAtMs, requestDueMs };
  let sent = await send(prepared, io, signal);
  if (sent.end.kind === 'replied' && asksWithoutStreamOptions(prepared, sent.end)) {
    sent = await send({ ...prepared, context: { ...context, withoutStreamOptions: true } }, io, signal);
    // Only an answer proves that the options were the trouble; a mistaken lesson would cost later streams their usage.
    if (isOk(sent.end)) io.withoutStreamOptions.add(candidate.key.id);
  }
  return judge(prepared, sent, io.clock);
}

function isOk(end: ExchangeEnd): boolean {
  return end.kind === 'streaming' || (end.kind === 'replied' && end.status === 200);
}

function asksWithoutStreamOptions(prepared: Prepared, end: { status: number; body: Buffer }): boolean {
  return (
    prepared.call.request.stream === true &&
    !prepared.context.withoutStreamOptions &&
    end.status !== 200 &&
    prepared.provider.refusesStreamOptions?.(end.status, end.body, prepared.call.request) === true
  );
}

function upstreamCall(prepared: Prepared, io: AttemptIo, request: UpstreamRequest): UpstreamCall {
  const { candidate, endpoint, provider, call, secret } = prepared;
  return {
    provider: candidate.provider,
    origin: endpoint.origin,
    path: endpoint.prefix + request.path,
    headers: {
      'content-type': 'application/json',
      accept: call.request.stream === true ? 'text/event-stream' : 'application/json',
      'accept-encoding': 'identity',
      ...io.telemetry.attemptSent(call, candidate, endpoint.origin),
      ...request.headers,
      ...provider.authHeaders(secret.reveal()),
    },
    body: request.body,
    residency: candidate.residency,
    residencyRequested: call.options.residency,
    userAddress: candidate.provider === 'self_hosted',
    userId: call.userId,
  };
}

function send(prepared: Prepared, io: AttemptIo, signal: AbortSignal): Promise<Sent> {
  const { call, candidate, provider, context, secret, startedAtMs, requestDueMs } = prepared;
  // Checked again where the socket is about to be opened, whatever the plan said.
  if (!residencyAllows(call.options.residency, candidate.residency)) {
    throw new Error('A candidate outside the requested residency reached an attempt.');
  }
  const request = provider.translateRequest(call.request, context);
  const translator = call.request.stream === true ? provider.streamTranslator(context) : null;
  return new Promise((resolve) => {
    const job = {
      call,
      candidate,
      upstreamCall: upstreamCall(prepared, io, request),
      translator,
      attemptDueMs: startedAtMs + attemptLimitMs(call),
      requestDueMs,
      startedAtMs,
      monotonicMs: io.clock.monotonicMs,
      signal,
      telemetry: io.telemetry,
      answers: io.answers,
      redact: (text: string) => redactReason(maskEcho(text, call.request), secret.reveal()),
    };
    const settle = (end: ExchangeEnd) => resolve({ end, translator, dropped: request.dropped });
    new Exchange(job, settle).start(io.transport);
  });
}
