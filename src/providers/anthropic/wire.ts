import type { JsonRecord } from '../json-value.ts';

/**
 * Shapes of the Messages API, as far as we read or write them (Claude docs: Messages API and Streaming messages, read
 * 2026-11-20; anthropic-sdk-typescript src/resources/messages/messages.ts, snapshot of 2026-08-19). What we write is
 * typed as it stands here; what we read is `Untrusted`: its names are, its values are not.
 */

interface Cacheable {
  readonly cache_control?: JsonRecord;
}

export interface TextBlock extends Cacheable {
  readonly type: 'text';
  readonly text: string;
}

/** What becomes of the parts of messages; `OtherBlock`: a part of a kind we do not know, as it came. */
export type ContentBlock =
  | TextBlock
  | ImageBlock
  | DocumentBlock
  | ToolUseBlock
  | ToolResultBlock
  | OtherBlock;

export interface ImageBlock extends Cacheable {
  readonly type: 'image';
  readonly source:
    | { readonly type: 'url'; readonly url: string }
    | { readonly type: 'base64'; readonly media_type: string; readonly data: string };
}

export interface DocumentBlock extends Cacheable {
  readonly type: 'document';
  readonly source: { readonly type: 'base64'; readonly media_type: 'application/pdf'; readonly data: string };
  readonly title?: string;
}

export interface ToolUseBlock {
  readonly type: 'tool_use';
  readonly id: string;
  readonly name: string;
  readonly input: JsonRecord;
}

export interface ToolResultBlock {
  readonly type: 'tool_result';
  readonly tool_use_id: string;
  readonly content?: string | readonly ContentBlock[];
}

export interface OtherBlock {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly [field: string]: unknown;
}

export interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: ContentBlock[];
}

export interface Tool extends Cacheable {
  readonly name: unknown;
  readonly description?: string;
  readonly input_schema: JsonRecord;
}

export interface ToolChoice {
  readonly type: 'auto' | 'any' | 'none' | 'tool';
  readonly name?: unknown;
  readonly disable_parallel_tool_use?: boolean;
}

/** The body of POST /v1/messages. */
export interface MessagesRequest {
  readonly model: string;
  readonly max_tokens: number;
  readonly system?: readonly ContentBlock[];
  readonly messages: readonly Turn[];
  readonly temperature?: number;
  readonly top_p?: number;
  readonly stop_sequences?: readonly string[];
  readonly metadata?: { readonly user_id: string };
  /** A tool that is no function is the vendor's own kind, as it came. */
  readonly tools?: readonly (Tool | JsonRecord)[];
  readonly tool_choice?: ToolChoice;
  readonly output_config?: { readonly format: { readonly type: 'json_schema'; readonly schema: JsonRecord } };
  readonly stream?: true;
}

/** A block of an answer, whole or as it begins in a stream: `text`, `thinking`, `tool_use` and kinds we skip. */
export interface AnswerBlock {
  type: string;
  text: string;
  thinking: string;
  id: string;
  name: string;
  input: JsonRecord;
}

/** Disjoint and cumulative counts (`UsageReader`). */
export interface MessageUsage {
  input_tokens: number;
  output_tokens: number;
  cache_read_input_tokens: number;
  cache_creation_input_tokens: number;
  cache_creation: CacheCreation;
  output_tokens_details: { thinking_tokens: number };
}

export interface CacheCreation {
  ephemeral_5m_input_tokens: number;
  ephemeral_1h_input_tokens: number;
}

/** A whole answer; in `message_start` without content. */
export interface Message {
  id: string;
  model: string;
  content: AnswerBlock[];
  stop_reason: string;
  usage: MessageUsage;
}

/** Any event of a stream: `message_start`, `content_block_start`, `_delta`, `_stop`, `message_delta`, … */
export interface MessageEvent {
  type: string;
  message: Message;
  index: number;
  content_block: AnswerBlock;
  delta: EventDelta;
  usage: MessageUsage;
}

/** `text_delta`, `thinking_delta`, `input_json_delta`; that of a `message_delta` has no type but a stop reason. */
export interface EventDelta {
  type: string;
  text: string;
  thinking: string;
  partial_json: string;
  stop_reason: string;
}
