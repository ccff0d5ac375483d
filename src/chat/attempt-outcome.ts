import { answerBounds } from '../core/answer/answer-limits.ts';
import type { Usage } from '../core/answer/usage.ts';
import { noUsage } from '../core/answer/usage.ts';
import type { FailureCode } from '../core/error-codes.ts';
import { tallyJson } from '../core/json/json-tally.ts';
import type {
  AttemptFailure,
  CancelReason,
  FailureKind,
  UpstreamHeaders,
  UpstreamReply,
} from '../core/outcome.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import type { KeyMask } from '../core/secret/key-mask.ts';
import type { Redact } from '../core/secret/redact.ts';
import type {
  Provider,
  StreamContext,
  StreamTranslator,
  TranslatedAnswer,
  UnreadableAnswer,
  UpstreamError,
} from '../providers/provider.ts';
import type { AnswerHold } from './answer-budget.ts';
import { noRoomForAnswer } from './held-bytes.ts';
import type { ExchangeEnd, OpenStream } from './open-stream.ts';
import type { UnusableKey } from './opened-key.ts';
import type { Clock, TransportFailure } from './ports.ts';
import { shownHeaders } from './verbatim-error.ts';

export type AttemptOutcome =
  | { readonly kind: 'answered'; readonly answer: TranslatedAnswer }
  | { readonly kind: 'stream-opened'; readonly stream: OpenStream }
  | { readonly kind: 'failed'; readonly failure: AttemptFailure }
  /** `usage`: what a stream had stated before its first token. */
  | { readonly kind: 'cancelled'; readonly reason: CancelReason; readonly usage: Usage };

/** The attempt, as far as its outcome depends on it. */
export interface AttemptContext {
  readonly call: ChatCall;
  readonly provider: Provider;
  readonly translation: StreamContext;
  readonly keyMask: Pick<KeyMask, 'bytes'>;
  /** Of its whole answer. */
  readonly room: AnswerHold;
  readonly redact: Redact;
}

/** A failure of which the vendor said nothing, and for which nobody is blamed. */
const unsaid = {
  status: null,
  vendorCode: null,
  retryAfterMs: null,
  reply: null,
  blamesCandidate: false,
  blamesProvider: false,
} as const satisfies Partial<AttemptFailure>;

function failedUnasked(
  kind: FailureKind,
  reason: string,
  more: Pick<AttemptFailure, 'unusableAddress'> = {},
): AttemptOutcome {
  return { kind: 'failed', failure: { ...unsaid, kind, reason, ...more } };
}

/** The outcome of a key that cannot be used: the next candidate may have one that can. */
export function outcomeOfUnusableKey({ kind, reason }: UnusableKey): AttemptOutcome {
  if (kind === 'unopened') return failedUnasked('key-unreadable', reason);
  return failedUnasked('unreachable', reason, { unusableAddress: 'unreadable' });
}

/** The outcome of an attempt that threw: the next candidate may not need the code that did. */
export function brokenAttempt(): AttemptOutcome {
  return failedUnasked('internal-error', 'An error of the gateway itself.');
}

/** How the end of an exchange is to be understood: an answer, an opened stream, or a failure with its class. */
export function outcomeOfExchange(
  context: AttemptContext,
  end: ExchangeEnd,
  translator: StreamTranslator | null,
  clock: Clock,
): AttemptOutcome {
  switch (end.kind) {
    case 'streaming':
      return { kind: 'stream-opened', stream: end.stream };
    case 'broken':
      throw end.cause;
    case 'cancelled':
      return { kind: 'cancelled', reason: end.reason, usage: translator?.usage ?? noUsage };
    case 'timed-out':
      return failedInOurWords(timeoutFailure(context, end.afterMs), translator);
    case 'transport':
      return failedInOurWords(failureOfTransport(end.failure), translator);
    case 'stream-failed':
      return failed(context, withUsage(failureOf(translator?.failure ?? null, 200, null), translator));
    case 'replied':
      return outcomeOfReply(context, end, clock);
  }
}

function outcomeOfReply(context: AttemptContext, reply: UpstreamReply, clock: Clock): AttemptOutcome {
  const { provider, translation, call, room, keyMask } = context;
  const { status, headers, body, cut } = reply;
  if (status !== 200) {
    const error = provider.readError(status, headers, body, clock.wallMs());
    // It may be passed on as it is, and vendors quote the key that they refuse.
    const shown = { status, headers: shownOf(headers, keyMask), body: keyMask.bytes(body, cut), cut };
    return failed(context, failureOf(error, status, shown));
  }
  // Before it is parsed: what came within its bounds may be many times as large as values.
  const tally = tallyJson(body, answerBounds);
  // One beyond all bounds will not be parsed.
  const values = typeof tally === 'string' ? 0 : tally.values;
  if (!room.countParsed(body.length, values))
    return failedInOurWords(failureOfTransport(noRoomForAnswer), null);
  // Some servers answer a stream request as JSON: it is paid for, and can be streamed from here.
  const answer = provider.translateAnswer(body, translation, tally);
  if (answer.kind === 'answer') return { kind: 'answered', answer };
  room.count(0);
  const noStream = call.request.stream === true && answer.code === null;
  const prefix = noStream ? 'The answer to a stream request is no event stream: ' : '';
  return failed(context, noAnswer(answer, prefix));
}

/** Those that an override's error shows, without the key; of several of one name the first. */
function shownOf(headers: UpstreamHeaders, keyMask: Pick<KeyMask, 'bytes'>): UpstreamHeaders {
  const shown: Record<string, string> = {};
  for (const name of shownHeaders) {
    const given = headers[name];
    const value = typeof given === 'object' ? given[0] : given;
    if (value !== undefined) shown[name] = keyMask.bytes(Buffer.from(value), false).toString();
  }
  return shown;
}

/** With what its stream, if it was one, had stated before its first token. */
function withUsage(failure: AttemptFailure, translator: StreamTranslator | null): AttemptFailure {
  const usage = translator?.usage ?? noUsage;
  return usage.basis === 'none' ? failure : { ...failure, usage };
}

/** There is nothing to mask, which hundreds of calls that end at once would each pay for. */
function failedInOurWords(failure: AttemptFailure, translator: StreamTranslator | null): AttemptOutcome {
  return { kind: 'failed', failure: withUsage(failure, translator) };
}

/** With the vendor's words made fit to be kept. */
function failed(context: AttemptContext, failure: AttemptFailure): AttemptOutcome {
  const [reason = '', code = ''] = context.redact([failure.reason, failure.vendorCode ?? '']);
  const vendorCode = failure.vendorCode === null ? null : (code as FailureCode);
  return { kind: 'failed', failure: { ...failure, reason, vendorCode } };
}

function noAnswer({ kind, reason, code, usage }: UnreadableAnswer, prefix: string): AttemptFailure {
  return {
    ...unsaid,
    kind,
    status: 200,
    reason: prefix + reason,
    vendorCode: code,
    blamesCandidate: true,
    ...(usage !== undefined && { usage }),
  };
}

function failureOf(error: UpstreamError | null, status: number, reply: UpstreamReply | null): AttemptFailure {
  const kind: FailureKind = error?.kind ?? 'upstream-failed';
  return {
    kind,
    status,
    reason: error?.message ?? `The upstream failed with status ${status}.`,
    vendorCode: error?.code ?? null,
    retryAfterMs: error?.retryAfterMs ?? null,
    reply,
    blamesCandidate: kind === 'upstream-failed' || kind === 'key-rejected' || kind === 'not-found',
    blamesProvider: kind === 'upstream-failed' && status >= 500,
  };
}

/** A limit shorter than the default is the client's choice and never counts against the candidate. */
function timeoutFailure({ call }: AttemptContext, afterMs: number): AttemptFailure {
  const defaultMs = call.tables.document.timeouts.attempt_seconds * 1000;
  const ownMs = call.options.timeoutMs ?? defaultMs;
  return {
    ...unsaid,
    kind: 'timed-out',
    reason: `No answer within ${(afterMs / 1000).toFixed(1)} s.`,
    blamesCandidate: afterMs >= defaultMs,
    ...(ownMs < defaultMs && afterMs >= ownMs && { byCallersLimit: true }),
  };
}

/** No byte of the request has left, and everybody's calls would fare alike. */
const noConnection: ReadonlySet<TransportFailure['kind']> = new Set([
  'connect-refused',
  'connect-timeout',
  'dns',
  'proxy-unreachable',
  'proxy-refused',
  'proxy-login',
  'proxy-failed',
]);

/** Somebody answered. */
const unreadable: ReadonlySet<TransportFailure['kind']> = new Set([
  'protocol',
  'unknown-coding',
  'too-large',
]);

function failureOfTransport({ kind, message }: TransportFailure): AttemptFailure {
  const isUnreadable = unreadable.has(kind);
  const isRefused = kind === 'forbidden-address' || kind === 'proxy-abroad';
  return {
    ...unsaid,
    kind: kind === 'no-room' ? kind : isUnreadable ? 'unreadable' : 'unreachable',
    reason: message,
    blamesCandidate: !isRefused && kind !== 'no-room',
    blamesProvider: noConnection.has(kind),
    ...(kind === 'reset' && { connectionCut: true }),
    ...(isRefused && { unusableAddress: 'refused' }),
  };
}
