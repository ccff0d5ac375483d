import type { Usage } from './answer/usage.ts';
import type { FailureCode } from './error-codes.ts';

/** Why one attempt gave no answer: a value, judged by core/final-error.ts. */
export const failureKinds = [
  'rate-limited',
  'upstream-failed',
  'timed-out',
  'unreachable',
  'unreadable',
  /** A 200 that does not say of every choice why it ended: half an answer. */
  'incomplete',
  'key-rejected',
  /** The stored key does not open: our own failure, no vendor was asked. */
  'key-unreadable',
  'not-found',
  'refused',
  /** Another 4xx than those that refuse the request, the key or the model. */
  'unexpected-status',
  /** The gateway had no room for the call, or for its answer: the vendor has no part in it. */
  'no-room',
  /** A bug of ours, which costs the request this candidate only. */
  'internal-error',
] as const;
export type FailureKind = (typeof failureKinds)[number];

/** Whether an answer stands behind a status. 201 is what some frameworks of users' own servers say to any POST. */
export function promisesAnswer(status: number): boolean {
  return status === 200 || status === 201;
}

/** A vendor's response headers, lower case. */
export type UpstreamHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** What the vendor sent, the provider key masked, kept for override requests, whose errors are passed on verbatim. */
export interface UpstreamReply {
  readonly status: number;
  readonly headers: UpstreamHeaders;
  readonly body: Buffer;
  /** The body was longer than we read of an error. */
  readonly cut: boolean;
}

export interface AttemptFailure {
  readonly kind: FailureKind;
  /** Upstream HTTP status; null when no answer came. */
  readonly status: number | null;
  /** Redacted, at most 500 characters. */
  readonly reason: string;
  /** The vendor's own error code or type, redacted; null when it gave none. */
  readonly vendorCode: FailureCode | null;
  readonly retryAfterMs: number | null;
  /** Null when no answer came, or when it was a 200 that turned out to be none. */
  readonly reply: UpstreamReply | null;
  /** What the vendor had stated before it failed; absent where it stated nothing. Never complete. */
  readonly usage?: Usage;
  /** True when it can be laid to the candidate rather than to the client: counts towards opening its breaker. */
  readonly blamesCandidate: boolean;
  /** Connect failure or 5xx: a sign of trouble that every user would see. */
  readonly blamesProvider: boolean;
  /** It took longer than its caller's own limit, which is shorter than everybody's. */
  readonly byCallersLimit?: true;
  /** The connection ended behind the request, which may have been carried out; the client decides on a repeat. */
  readonly connectionCut?: true;
  /** Nobody was asked: our outbound policy refuses the address or the way, or what is stored is none. It stays so. */
  readonly unusableAddress?: 'refused' | 'unreadable';
}

/** Why a request was cancelled from our side of the wire. */
export type CancelReason = 'client-gone' | 'drain';
