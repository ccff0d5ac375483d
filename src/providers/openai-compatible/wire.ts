import type { ChatMessage } from '../../core/request/chat-request.ts';

/**
 * Shapes of the Chat Completions API, as far as we read them (OpenAI API reference: Chat Completions, read 2026-11-20;
 * openai-node src/resources/chat/completions/completions.ts, snapshot of 2026-08-21), with what other servers of this
 * format add. What is read is `Untrusted`: the names are known, the values are not. Fields that are not here pass.
 */

/** A request under construction; a field set to undefined is not sent, and what is not named here goes as it came. */
export interface RequestBody {
  model: string;
  messages: readonly ChatMessage[];
  temperature?: number | undefined;
  stop?: string | readonly string[] | undefined;
  stream_options?: object | undefined;
  max_tokens?: number | undefined;
  max_completion_tokens?: number | undefined;
  reasoning_effort?: unknown;
  [field: string]: unknown;
}

/** A part of a message's content. */
export interface WireContentPart {
  type: string;
  text: string;
}

export interface CalledFunction {
  name: string;
  /** JSON text; some servers give an object. */
  arguments: string;
  /** The OpenAI SDKs add it to what their users hand back. */
  parsed_arguments: unknown;
}

/** A call, or in a stream a fragment of one. */
export interface WireToolCall {
  /** In streams only. */
  index: number;
  id: string;
  type: string;
  function: CalledFunction;
  /** A call of a tool of free text. */
  custom: object;
}

/** Of content in parts. */
export interface TextPart {
  type: string;
  text: string;
}

/** The message of a choice, or in a stream what is new of it. */
export interface WireMessage {
  role: string;
  content: string;
  refusal: string;
  /** As vLLM, llama.cpp, Sarvam and others call it; `reasoning` in others again. */
  reasoning_content: string;
  reasoning: string;
  audio: object;
  function_call: CalledFunction;
  tool_calls: WireToolCall[];
  /** Another gateway's block: never passed on. */
  gateway: unknown;
}

export interface WireChoice {
  index: number;
  /** Of a whole answer. */
  message: WireMessage;
  /** Of a chunk. */
  delta: WireMessage;
  finish_reason: string;
  /** Some servers put the error of one choice here. */
  error: unknown;
  gateway: unknown;
}

/** A whole answer, or one chunk of a stream. */
export interface WireCompletion {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: WireChoice[];
  usage: CompletionUsage;
  system_fingerprint: string;
  gateway: unknown;
}

/** `CompletionUsage` of the same page. */
export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /** Together's. */
  cached_tokens: number;
  prompt_tokens_details: object;
  completion_tokens_details: object;
}
