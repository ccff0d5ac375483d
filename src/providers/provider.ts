import type { ChatCompletion, WireUsage } from '../core/answer/chat-completion.ts';
import type { JsonAnswer } from '../core/answer/json-answer.ts';
import type { SseDecoder } from '../core/answer/sse-decoder.ts';
import type { Usage } from '../core/answer/usage.ts';
import type { Feature } from '../core/capability.ts';
import type { FailureCode } from '../core/error-codes.ts';
import type { Tallied } from '../core/json/json-tally.ts';
import type { UpstreamHeaders } from '../core/outcome.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { ChatRequest } from '../core/request/chat-request.ts';
import type { ModelFacts } from '../core/tables/model-facts.ts';

/** What a translation may know beside the request itself. */
export interface TranslationContext {
  /** The candidate's model id, as the vendor names it. */
  readonly model: string;
  readonly facts: ModelFacts;
  /** How this key's server wants its requests, as `otherForm` once found; null: the usual way. */
  readonly form: string | null;
}

/** A translated request: no credentials, no origin; the attempt adds both. */
export interface UpstreamRequest {
  /** The vendor's own path, added to the base address (`/v1/chat/completions`). */
  readonly path: string;
  /** Extra headers, lower case, without content-type and authorization. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string;
  /** Client fields that the vendor lacks and that were left out: the attempt's report names them. */
  readonly dropped: readonly string[];
}

/** A whole answer in OpenAI shape. `json`: its text, ending with `}`, without a `gateway` block: ready for splicing. */
export interface TranslatedAnswer extends JsonAnswer {
  readonly kind: 'answer';
  readonly completion: ChatCompletion;
  readonly usage: Usage;
}

/**
 * A 200 that is no answer. It falls back. `unreadable`: not JSON, an error object, no choices. `incomplete`:
 * the vendor does not say of every choice why it ended, as Ollama does when it aborts a runaway answer.
 */
export interface UnreadableAnswer {
  readonly kind: 'unreadable' | 'incomplete';
  readonly reason: string;
  /** The vendor's error code or type when it reported an error; else null. */
  readonly code: FailureCode | null;
  /** What it stated all the same; absent where it stated nothing. Never complete. */
  readonly usage?: Usage;
}

/** Why a vendor said no; decided by status first, by body where statuses lie. */
export type UpstreamErrorKind =
  /** 429 of any sort, quota included. */
  | 'rate-limited'
  /** 5xx, 529, 408, 3xx, an error object in a 200. */
  | 'upstream-failed'
  /** 401, 402, 403: this key or account. */
  | 'key-rejected'
  /** 404: this model. */
  | 'not-found'
  /** 400, 413, 422: the request itself. */
  | 'refused'
  /** Any other 4xx (405, 409, 451 …): no status with which a vendor answers chat requests, whoever is to blame. */
  | 'unexpected-status';

export interface UpstreamError {
  readonly kind: UpstreamErrorKind;
  /** The vendor's words, at most 500 characters, for attempts[] and the log row (redacted by the caller). */
  readonly message: string;
  /** The vendor's error code or type, or null. */
  readonly code: FailureCode | null;
  /** Milliseconds the vendor asks to wait, from whichever header carries it; null when none is valid. */
  readonly retryAfterMs: number | null;
}

/** Where a stream stands after the bytes seen so far. */
export type StreamPhase =
  /** No token yet: output must be held back, falling back is still free. */
  | 'prefix'
  /** Content, a tool call, forwarded reasoning or a finish reason was seen. */
  | 'answering'
  /** The vendor's end marker was seen: complete. Later bytes are ignored. */
  | 'finished'
  /** The vendor reported an error or broke the framing; see `failure`. */
  | 'failed';

/**
 * Turns one vendor's stream into OpenAI chunks. Made fresh per attempt; the only state of a translation.
 * Equal input bytes give equal output bytes, however they are cut.
 */
export interface StreamTranslator {
  /**
   * Takes one read of the upstream body. Returns whole SSE events in OpenAI chunk shape, ready to be
   * written, or null. Usage-only chunks, `[DONE]` and any `gateway` block are never among them.
   */
  push(chunk: Buffer): Buffer | null;
  /**
   * The upstream body ended cleanly. Flushes; `phase` is afterwards `finished` (the answer was complete)
   * or `failed` (truncated or empty).
   */
  end(): Buffer | null;
  readonly phase: StreamPhase;
  /** True once a token was seen; stays true when the stream fails later. */
  readonly tokenSeen: boolean;
  /** Set when `phase` is `failed`. */
  readonly failure: UpstreamError | null;
  /** `complete` once the vendor gave its final counts. */
  readonly usage: Usage;
  /** UTF-8 bytes of the text, reasoning and calls that came, as they are without JSON; for estimates. */
  readonly textBytes: number;
  /** Of heap, roughly: what it keeps from one event to the next. */
  readonly keptBytes: number;
  /** With the event that is not whole; its memory is up to twice its bytes. */
  readonly decoder: Pick<SseDecoder, 'heldBytes'>;
  /** Every choice seen has its finish reason: only usage and the end marker may still come. */
  readonly answerEnded: boolean;
  /** The OpenAI-shaped usage object for clients that asked for it; null when nothing was reported. */
  readonly wireUsage: WireUsage | null;
  /** What the vendor said beside its usage or of itself, bounded: `system_fingerprint`, `timings` and the like. */
  readonly extras: Readonly<Record<string, unknown>>;
  /** `id`, `created` (Unix seconds) and `model` of the chunks; fallbacks until the vendor names them. */
  readonly id: string;
  readonly created: number;
  readonly model: string;
  /** Of the choices that have ended, in the order of their indexes. */
  readonly finishReasons: readonly string[];
}

export interface StreamContext extends TranslationContext {
  /** Used when the vendor gives none. */
  readonly fallbackId: string;
  readonly createdSeconds: number;
  readonly maxEventBytes: number;
  /** How many choices the client asked for. */
  readonly choices: number;
}

/**
 * The contract of one vendor: pure functions from values to values. It never sends, and never sees a key
 * except in `authHeaders`, which the attempt calls last.
 */
export interface Provider {
  readonly name: ProviderName;
  /** Where the vendor's address begins; null for users' servers, whose keys carry theirs. */
  readonly defaultBaseUrl: string | null;
  authHeaders(secret: string): Readonly<Record<string, string>>;
  /** The cheapest question that needs a key: which models there are. Asked with GET, costs nothing, changes nothing. */
  readonly modelsRequest: Pick<UpstreamRequest, 'path' | 'headers'>;
  /**
   * What the vendor's format has no words for, whatever the model can do: such requests are planned past it,
   * so that a translation leaves out nothing that would change the answer.
   */
  lacks(facts: ModelFacts): readonly Feature[];
  translateRequest(request: ChatRequest, context: TranslationContext): UpstreamRequest;
  /** `tally`: of the body within `answerBounds`, where it is known already. */
  translateAnswer(body: Buffer, context: StreamContext, tally?: Tallied): TranslatedAnswer | UnreadableAnswer;
  streamTranslator(context: StreamContext): StreamTranslator;
  /** `nowMs` dates Retry-After values that are instants. Header names are lower case. */
  readError(status: number, headers: UpstreamHeaders, body: Buffer, nowMs: number): UpstreamError;
  /**
   * Only where servers of one provider differ in what they take: the form of request that this error calls for, or
   * null. The attempt asks once more in that form, and remembers it for the key when the server answers then.
   */
  otherForm?(status: number, body: Buffer, request: ChatRequest): string | null;
}
