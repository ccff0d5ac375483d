import type { CancelReason, UpstreamHeaders } from '../core/outcome.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import type { Redact } from '../core/secret/redact.ts';
import type { StreamTranslator } from '../providers/provider.ts';
import type { AnswerBudgets } from './answer-budget.ts';
import type { CancelSignal } from './cancellation.ts';
import type { DueList } from './due-list.ts';
import type { TransportFailure, UpstreamCall } from './ports.ts';
import type { ChatTelemetry } from './telemetry-port.ts';

/** How the exchange with one candidate ended, before any judgement. */
export type ExchangeEnd =
  | {
      readonly kind: 'replied';
      /** 200 for every status that promises an answer. */
      readonly status: number;
      readonly headers: UpstreamHeaders;
      readonly body: Buffer;
      /** An error body was read no further. */
      readonly cut: boolean;
    }
  | { readonly kind: 'streaming'; readonly stream: OpenStream }
  /** The stream failed before its first token; the translator's `failure` says why. */
  | { readonly kind: 'stream-failed' }
  | { readonly kind: 'transport'; readonly failure: TransportFailure }
  | { readonly kind: 'timed-out'; readonly afterMs: number }
  /** A bug of ours threw. */
  | { readonly kind: 'broken'; readonly cause: unknown }
  | { readonly kind: 'cancelled'; readonly reason: CancelReason };

export type StreamEnd =
  | { readonly kind: 'complete' }
  /** `idle`: the vendor fell silent. */
  | { readonly kind: 'failed'; readonly reason: string; readonly idle?: true }
  /** A bug of ours threw. */
  | { readonly kind: 'broken'; readonly cause: unknown }
  | { readonly kind: 'cancelled'; readonly reason: CancelReason };

export interface StreamConsumer {
  onBytes(bytes: Buffer): void;
  /** Once, and nothing after it. */
  onEnd(end: StreamEnd): void;
}

/** A stream whose first token has been seen. What came so far is held until `attach`. */
export interface OpenStream {
  readonly translator: StreamTranslator;
  /** When the read with the first token came in, monotonic milliseconds. */
  readonly firstTokenAtMs: number;
  attach(consumer: StreamConsumer): void;
  /** The vendor's, that have come. */
  readonly answerBytes: number;
  /** How long, in all, `pause` held the upstream back. */
  readonly stalledMs: number;
  /** Tells the vendor's connection from all others; null: there is none any more, or it is not known. */
  readonly connectionName: string | null;
  /** The client reads too slowly; after a minute of it both sides are let go. */
  pause(): void;
  resume(): void;
}

export interface ExchangeJob {
  readonly call: ChatCall;
  readonly upstreamCall: UpstreamCall;
  /** Null for JSON requests. */
  readonly translator: StreamTranslator | null;
  /** Monotonic milliseconds: limit of this attempt up to the answer or the first token. */
  readonly attemptDueMs: number;
  /** Monotonic milliseconds: limit of the whole request. */
  readonly requestDueMs: number;
  readonly startedAtMs: number;
  readonly monotonicMs: () => number;
  readonly dues: DueList;
  readonly signal: CancelSignal;
  readonly telemetry: Pick<ChatTelemetry, 'answerBegan' | 'streamStalled'>;
  readonly answers: AnswerBudgets;
  readonly redact: Redact;
}
