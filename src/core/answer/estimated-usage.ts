import type { ChatRequest, ContentPart } from '../request/chat-request.ts';
import type { Usage } from './usage.ts';

/** UTF-8: of English a token has four letters of one byte each, of Hindi or Chinese a letter of three, or some more. */
const textBytesPerToken = 4;
/** Vendors send about one token in an event, of 150 to 350 bytes with all that is around it. */
const bytesPerToken = 250;
/**
 * What a model thinks and does not show comes before its text, about as fast as that: 50 to 150 a second. Without
 * reasoning this is the wait for the first token, of a second or less.
 */
const unseenTokensPerSecond = 100;

/** An image of middle size takes some thousand tokens, whether it is sent or only named. */
const mediumBytes = 1000 * textBytesPerToken;
/** Of a long recording or document as base64, this many for a byte of its text. */
const codedPerByte = 100;

/** What an answer without final counts was made of, as far as it was seen here. */
export interface CutAnswer {
  readonly promptBytes: number;
  /** That had come of it. */
  readonly answerBytes: number;
  /** Of its text, reasoning and calls, of a whole answer all of it: some vendors send a dozen tokens in an event. */
  readonly textBytes: number;
  /** From its request to the first token of its stream, in milliseconds; 0 where there was none. */
  readonly unseenMs: number;
  /** What it may have had at most, by its request; null: no limit was named. */
  readonly mostTokens: number | null;
}

/**
 * What an answer may have used up, where the vendor had not stated it: for limits, which would else not hold for
 * clients that leave before the last chunk. Rows, costs and statistics have what was stated and nothing else.
 */
export function estimatedUsage(stated: Usage, cut: CutAnswer): Usage {
  const { promptBytes, answerBytes, textBytes, unseenMs, mostTokens } = cut;
  const seen = Math.max(answerBytes / bytesPerToken, textBytes / textBytesPerToken);
  const unseen = (unseenMs / 1000) * unseenTokensPerSecond;
  const outputTokens = Math.min(Math.max(seen, mostTokens ?? Number.POSITIVE_INFINITY), seen + unseen);
  return {
    ...stated,
    basis: 'partial',
    inputTokens: Math.max(stated.inputTokens, Math.ceil(promptBytes / textBytesPerToken)),
    outputTokens: Math.max(stated.outputTokens, Math.ceil(outputTokens)),
  };
}

/** What the choices of an answer may have together; null: no limit was named. */
export function mostOutputTokens({ max_completion_tokens, max_tokens, n }: ChatRequest): number | null {
  const most = max_completion_tokens ?? max_tokens;
  return most === undefined ? null : most * (n ?? 1);
}

/**
 * UTF-8 bytes of all that a prompt consists of: the messages with their tool calls, the tools and the form of the
 * answer, which vendors count as input too. What is no text counts as a medium.
 */
export function promptBytes({ messages, tools, response_format: format }: ChatRequest): number {
  let bytes = textBytesOf(tools) + textBytesOf(format);
  for (const { content, role: _, ...others } of messages) {
    bytes += textBytesOf(others);
    if (typeof content === 'string') bytes += Buffer.byteLength(content);
    else for (const part of content ?? []) bytes += partBytes(part);
  }
  return bytes;
}

function partBytes({ type, text, ...others }: ContentPart): number {
  const written = typeof text === 'string' ? Buffer.byteLength(text) : 0;
  if (type === 'text') return written + textBytesOf(others);
  return written + Math.max(mediumBytes, Math.ceil(textBytesOf(others) / codedPerByte));
}

/** Of the texts and names in any value of JSON. */
function textBytesOf(root: unknown): number {
  const left = [root];
  let bytes = 0;
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value === 'string') bytes += Buffer.byteLength(value);
    if (typeof value !== 'object' || value === null) continue;
    if (!Array.isArray(value)) for (const name of Object.keys(value)) bytes += Buffer.byteLength(name);
    for (const member of Object.values(value)) left.push(member);
  }
  return bytes;
}
