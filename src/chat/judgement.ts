import type { ChatCall } from '../core/chat-call.ts';
import { maskEchoes } from '../core/mask-echo.ts';
import type { AttemptFailure, FailureKind, UpstreamReply } from '../core/outcome.ts';
import { redactReason } from '../core/redact.ts';
import type { Secret } from '../core/secret.ts';
import type { Usage } from '../core/usage.ts';
import { noUsage } from '../core/usage.ts';
import type {
  Provider,
  StreamContext,
  StreamTranslator,
  TranslatedAnswer,
  UpstreamError,
} from '../providers/provider.ts';
import type { CancelReason } from './client-stream.ts';
import type { ExchangeEnd, OpenStream } from './open-stream.ts';
import type { Clock, TransportFailureKind } from './ports.ts';

export type AttemptOutcome =
  | { readonly kind: 'answered'; readonly answer: TranslatedAnswer; readonly dropped: readonly string[] }
  | { readonly kind: 'stream-opened'; readonly stream: OpenStream; readonly dropped: readonly string[] }
  | { readonly kind: 'failed'; readonly failure: AttemptFailure; readonly dropped: readonly string[] }
  | {
      readonly kind: 'cancelled';
      readonly reason: CancelReason;
      /** What a stream had stated before its first token. */
      readonly usage: Usage;
      readonly dropped: readonly string[];
    };

/** What was tried, as far as the verdict depends on it. */
export interface Tried {
  readonly call: ChatCall;
  readonly provider: Provider;
  readonly context: StreamContext;
  readonly secret: Secret;
  readonly startedAtMs: number;
}

/** What came of it. */
export interface Sent {
  readonly end: ExchangeEnd;
  readonly translator: StreamTranslator | null;
  readonly dropped: readonly string[];
}

type Judged = Omit<AttemptFailure, 'latencyMs'>;

function failedUnasked(kind: FailureKind, reason: string): AttemptOutcome {
  const failure: AttemptFailure = {
    kind,
    status: null,
    reason,
    vendorCode: null,
    retryAfterMs: null,
    latencyMs: 0,
    reply: null,
    blamesCandidate: false,
    blamesProvider: false,
  };
  return { kind: 'failed', failure, dropped: [] };
}

/** The verdict on a key that does not open: the next candidate may have one that does. */
export function unopenedKey(): AttemptOutcome {
  return failedUnasked('key-rejected', 'The stored provider key cannot be opened; register it again.');
}

/** The verdict on an attempt that threw: the next candidate may not need the code that did. */
export function brokenAttempt(): AttemptOutcome {
  return failedUnasked('internal-error', 'An error of the gateway itself.');
}

/** How one exchange is to be understood: an answer, an opened stream, or a failure with its class. */
export function judge(tried: Tried, sent: Sent, clock: Clock): AttemptOutcome {
  const { end, dropped } = sent;
  const fail = (failure: Judged): AttemptOutcome => {
    const latencyMs = Math.round(clock.monotonicMs() - tried.startedAtMs);
    const secret = tried.secret.reveal();
    const [reason, code] = maskEchoes([failure.reason, failure.vendorCode ?? ''], tried.call.request).map(
      (text) => redactReason(text, secret),
    ) as [string, string];
    const vendorCode = failure.vendorCode === null ? null : code;
    return { kind: 'failed', failure: { ...failure, reason, vendorCode, latencyMs }, dropped };
  };
  switch (end.kind) {
    case 'streaming':
      return { kind: 'stream-opened', stream: end.stream, dropped };
    case 'broken':
      throw end.cause;
    case 'cancelled':
      return { kind: 'cancelled', reason: end.reason, usage: sent.translator?.usage ?? noUsage, dropped };
    case 'timed-out':
      return fail(timeoutFailure(tried, end.afterMs));
    case 'transport':
      return fail(transportFailure(end.failure.kind, end.failure.message));
    case 'stream-failed':
      return fail(failureOf(sent.translator?.failure ?? null, 200, null));
    case 'replied':
      return judgeReply(
        tried,
        { status: end.status, headers: end.headers, body: end.body, cut: end.cut },
        clock,
        dropped,
        fail,
      );
  }
}

function judgeReply(
  tried: Tried,
  reply: UpstreamReply,
  clock: Clock,
  dropped: readonly string[],
  fail: (failure: Judged) => AttemptOutcome,
): AttemptOutcome {
  const { provider, context, call } = tried;
  if (reply.status !== 200) {
    const error = provider.readError(reply.status, reply.headers, reply.body, clock.wallMs());
    return fail(failureOf(error, reply.status, reply));
  }
  // Some servers answer a stream request as JSON: it is paid for, and can be streamed from here.
  const answer = provider.translateAnswer(reply.body, context);
  if (answer.kind !== 'answer') {
    const noStream = call.request.stream === true && answer.code === null;
    const prefix = noStream ? 'The answer to a stream request is no event stream: ' : '';
    return fail(noAnswer(answer.kind, prefix + answer.reason, answer.code));
  }
  return { kind: 'answered', answer, dropped };
}

function noAnswer(kind: FailureKind, reason: string, vendorCode: string | null): Judged {
  return {
    kind,
    status: 200,
    reason,
    vendorCode,
    retryAfterMs: null,
    reply: null,
    blamesCandidate: true,
    blamesProvider: false,
  };
}

function failureOf(error: UpstreamError | null, status: number, reply: UpstreamReply | null): Judged {
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
function timeoutFailure(tried: Tried, afterMs: number): Judged {
  const defaultMs = tried.call.tables.document.timeouts.attempt_seconds * 1000;
  return {
    kind: 'timed-out',
    status: null,
    reason: `No answer within ${(afterMs / 1000).toFixed(1)} s.`,
    vendorCode: null,
    retryAfterMs: null,
    reply: null,
    blamesCandidate: afterMs >= defaultMs,
    blamesProvider: false,
  };
}

function transportFailure(kind: TransportFailureKind, message: string): Judged {
  const isUnreadable = kind === 'too-large' || kind === 'protocol';
  const connects = kind === 'connect-refused' || kind === 'connect-timeout' || kind === 'dns';
  return {
    kind: kind === 'no-room' ? kind : isUnreadable ? 'unreadable' : 'unreachable',
    status: null,
    reason: message,
    vendorCode: null,
    retryAfterMs: null,
    reply: null,
    blamesCandidate: kind !== 'forbidden-address' && kind !== 'no-room',
    blamesProvider: connects,
    ...(kind === 'reset' && { connectionCut: true }),
  };
}
