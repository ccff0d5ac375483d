import type { Candidate } from '../core/candidate.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import { attemptLimitMs } from '../core/request/chat-call.ts';
import { residencyAllows } from '../core/request/residency.ts';
import { KeyMask } from '../core/secret/key-mask.ts';
import { maskEchoes } from '../core/secret/mask-echo.ts';
import { redactReason } from '../core/secret/redact.ts';
import type { StreamTranslator, UpstreamRequest } from '../providers/provider.ts';
import type { AnswerHold } from './answer-budget.ts';
import type { AttemptContext, AttemptOutcome } from './attempt-outcome.ts';
import { outcomeOfExchange, outcomeOfUnusableKey } from './attempt-outcome.ts';
import { AttemptTranslation } from './attempt-translation.ts';
import type { CancelSignal } from './cancellation.ts';
import type { ChatDeps } from './chat-deps.ts';
import { Exchange } from './exchange.ts';
import { longestOfOneTurn } from './later-turn.ts';
import type { OpenAttempt } from './open-attempt.ts';
import type { ExchangeEnd } from './open-stream.ts';
import type { OpenedKey } from './opened-key.ts';
import { openCandidate, upstreamCallOf } from './opened-key.ts';
import type { UpstreamCall } from './ports.ts';

/** One try, prepared: the plaintext key lives in here and nowhere else. */
interface PreparedAttempt extends AttemptContext {
  readonly candidate: Candidate;
  readonly key: OpenedKey;
  readonly translation: AttemptTranslation;
  /** Monotonic milliseconds. */
  readonly startedAtMs: number;
  readonly requestDueMs: number;
}

/** What came of one request to the upstream. */
interface UpstreamResult {
  readonly end: ExchangeEnd;
  readonly translator: StreamTranslator | null;
}

/**
 * One call to one candidate, up to the whole answer (JSON) or the first token (stream). Expected failures are values.
 * It sends a second time in one case only: to a server whose refusal its provider reads as a wish for another form.
 * `room` is what a whole answer is counted by, and stays so.
 */
export async function attempt(
  tried: OpenAttempt,
  call: ChatCall,
  deps: ChatDeps,
  requestDueMs: number,
  signal: CancelSignal,
  room: AnswerHold,
): Promise<AttemptOutcome> {
  const { candidate } = tried;
  const key = openCandidate(candidate, call, deps);
  if (key.kind !== 'opened') return outcomeOfUnusableKey(key);
  const keyMask = new KeyMask(key.secret);
  const prepared: PreparedAttempt = {
    call,
    candidate,
    key,
    provider: deps.providers[candidate.provider],
    translation: new AttemptTranslation(candidate, call, deps),
    startedAtMs: tried.startedAtMs,
    requestDueMs,
    room,
    keyMask,
    redact: (texts) => {
      const withoutKey = texts.map((text) => keyMask.words(text));
      return maskEchoes(withoutKey, call.request).map((text) => redactReason(text));
    },
  };
  tried.masksBy(prepared.redact);
  const first = await send(prepared, tried, deps, signal);
  const form = otherForm(prepared, first.end);
  if (form === null) return outcomeOfExchange(prepared, first.end, first.translator, deps.clock);
  const again = { ...prepared, translation: prepared.translation.in(form) };
  const second = await send(again, tried, deps, signal);
  // Only an answer proves that the form was the trouble; a mistaken lesson would cost later requests dearly.
  if (isOk(second.end)) deps.requestForms.learn(candidate.key.id, form);
  return outcomeOfExchange(again, second.end, second.translator, deps.clock);
}

function isOk(end: ExchangeEnd): boolean {
  return end.kind === 'streaming' || (end.kind === 'replied' && end.status === 200);
}

/** The form to ask in once more; null: this is the end of it. */
function otherForm({ provider, translation, call }: PreparedAttempt, end: ExchangeEnd): string | null {
  if (end.kind !== 'replied' || end.status === 200 || translation.form !== null) return null;
  return provider.otherForm?.(end.status, end.body, call.request) ?? null;
}

/** The body as it is handed to the transport: to write a large one as bytes is a turn's work of its own. */
async function bytesOf(body: string, deps: ChatDeps): Promise<Buffer> {
  await deps.later.turn();
  return Buffer.from(body);
}

/** What is sent. Tells of it too: the vendor's trace headers come of that. */
function toldCall(
  prepared: PreparedAttempt,
  deps: ChatDeps,
  request: UpstreamRequest,
  body: string | Buffer,
): UpstreamCall {
  const { candidate, key, provider, call } = prepared;
  return upstreamCallOf(key, provider, {
    method: 'POST',
    path: request.path,
    headers: {
      'content-type': 'application/json',
      accept: call.request.stream === true ? 'text/event-stream' : 'application/json',
      ...deps.telemetry.attemptSent(call, candidate, key.endpoint.origin),
      ...request.headers,
    },
    body,
    residency: candidate.residency,
    residencyBound: call.options.residency,
    userId: call.userId,
  });
}

/** One exchange. Not async by itself: a promise that is handed out by another one takes three turns of the queue. */
function send(
  prepared: PreparedAttempt,
  tried: OpenAttempt,
  deps: ChatDeps,
  signal: CancelSignal,
): Promise<UpstreamResult> {
  const { call, candidate, provider, translation } = prepared;
  // Checked again where the socket is about to be opened, whatever the plan said.
  if (!residencyAllows(call.options.residency, candidate.residency)) {
    throw new Error('A candidate outside the residency of its request reached an attempt.');
  }
  const request = provider.translateRequest(call.request, translation);
  tried.leftOut(request.dropped);
  const exchange = (body: string | Buffer): Promise<UpstreamResult> =>
    exchangeWith(prepared, tried, toldCall(prepared, deps, request, body), deps, signal);
  return request.body.length > longestOfOneTurn
    ? bytesOf(request.body, deps).then(exchange)
    : exchange(request.body);
}

function exchangeWith(
  prepared: PreparedAttempt,
  tried: OpenAttempt,
  sent: UpstreamCall,
  deps: ChatDeps,
  signal: CancelSignal,
): Promise<UpstreamResult> {
  const { call, provider, translation, startedAtMs, requestDueMs, redact } = prepared;
  const translator = call.request.stream === true ? provider.streamTranslator(translation) : null;
  const job = {
    call,
    upstreamCall: sent,
    translator,
    attemptDueMs: startedAtMs + attemptLimitMs(call),
    requestDueMs,
    startedAtMs,
    monotonicMs: deps.clock.monotonicMs,
    dues: deps.dues,
    signal,
    telemetry: deps.telemetry,
    answers: deps.answers,
    redact,
  };
  return new Promise((resolve) => {
    const exchange = new Exchange(job, (end) => {
      tried.reached(exchange);
      resolve({ end, translator });
    });
    exchange.start(deps.transport);
  });
}
