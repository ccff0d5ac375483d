import type { ChatMessage } from '../../core/chat-request.ts';
import type { JsonRecord } from '../json-value.ts';
import { isRecord, textOf } from '../json-value.ts';

type Content = ChatMessage['content'];

/** `data:image/png;base64,…`, the only form of inline image both formats share. */
const dataUri = /^data:([a-z]+\/[a-z0-9.+-]+);base64,/i;

/** Anthropic's own caching hint, which clients put on parts of OpenAI shape; it has no other translation. */
function withCacheControl(block: JsonRecord, part: JsonRecord): JsonRecord {
  return isRecord(part['cache_control']) ? { ...block, cache_control: part['cache_control'] } : block;
}

function textBlock(text: string, part: JsonRecord, dropped: Set<string>): JsonRecord | null {
  if (part['text'] === undefined && part['type'] === 'text') dropped.add('messages[].content[].text');
  // "text content blocks must contain non-whitespace text"
  return text.trim() === '' ? null : withCacheControl({ type: 'text', text }, part);
}

function imageBlock(part: JsonRecord, dropped: Set<string>): JsonRecord {
  const given = part['image_url'];
  if (isRecord(given) && (given['detail'] ?? null) !== null)
    dropped.add('messages[].content[].image_url.detail');
  const url = textOf(isRecord(given) ? given['url'] : given);
  const inline = dataUri.exec(url);
  if (inline === null) return withCacheControl({ type: 'image', source: { type: 'url', url } }, part);
  const mediaType = (inline[1] ?? '').toLowerCase();
  const source = {
    type: 'base64',
    media_type: mediaType === 'image/jpg' ? 'image/jpeg' : mediaType,
    data: url.slice(inline[0].length),
  };
  return withCacheControl({ type: 'image', source }, part);
}

/** Null for a part that says nothing. A part of unknown type goes as it is: the vendor must refuse it, not we. */
function blockOf(part: JsonRecord, dropped: Set<string>): JsonRecord | null {
  if (part['type'] === 'text') return textBlock(textOf(part['text']), part, dropped);
  if (part['type'] === 'refusal') return textBlock(textOf(part['refusal']), part, dropped);
  return part['type'] === 'image_url' ? imageBlock(part, dropped) : part;
}

/**
 * Content of any message as Anthropic blocks; empty and whitespace-only texts are refused there and left out.
 * What else is lost is added to `dropped`.
 */
export function contentBlocks(content: Content, dropped: Set<string>): JsonRecord[] {
  if (content === null || content === undefined) return [];
  const parts: readonly JsonRecord[] =
    typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return parts.map((part) => blockOf(part, dropped)).filter((block) => block !== null);
}
