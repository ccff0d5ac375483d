import type { ChatMessage } from '../../core/request/chat-request.ts';
import type { InlinePdf } from '../../core/request/inline-pdf.ts';
import { inlinePdf } from '../../core/request/inline-pdf.ts';
import type { JsonRecord, Untrusted } from '../json-value.ts';
import { isRecord, textOf } from '../json-value.ts';
import type { ContentBlock, DocumentBlock, ImageBlock, TextBlock } from './wire.ts';

type Content = ChatMessage['content'];

/** A part of content as clients write it (OpenAI API reference: Chat Completions, read 2026-11-20). */
interface ClientPart {
  type: string;
  text: string;
  refusal: string;
  /** Some clients write the URL itself. */
  image_url: ImageUrl;
  /** Anthropic's own caching hint, which clients put on parts of OpenAI shape. */
  cache_control: object;
}

interface ImageUrl {
  url: string;
  detail: string;
}

type Part = Untrusted<ClientPart>;

/** `data:image/png;base64,…`, the only form of inline image both formats share. */
const dataUri = /^data:([a-z]+\/[a-z0-9.+-]+);base64,/i;

/** The caching hint has no other translation. */
function withCacheControl<B extends TextBlock | ImageBlock | DocumentBlock>(block: B, part: Part): B {
  return isRecord(part.cache_control) ? { ...block, cache_control: part.cache_control } : block;
}

function textBlock(text: string, part: Part, dropped: Set<string>): TextBlock | null {
  if (part.text === undefined && part.type === 'text') dropped.add('messages[].content[].text');
  // "text content blocks must contain non-whitespace text"
  return text.trim() === '' ? null : withCacheControl({ type: 'text', text }, part);
}

function imageBlock(part: Part, dropped: Set<string>): ImageBlock {
  const given: Untrusted<ImageUrl> = isRecord(part.image_url) ? part.image_url : { url: part.image_url };
  if ((given.detail ?? null) !== null) dropped.add('messages[].content[].image_url.detail');
  const url = textOf(given.url);
  const inline = dataUri.exec(url);
  if (inline === null) return withCacheControl({ type: 'image', source: { type: 'url', url } }, part);
  const mediaType = (inline[1] ?? '').toLowerCase();
  const source = {
    type: 'base64' as const,
    media_type: mediaType === 'image/jpg' ? 'image/jpeg' : mediaType,
    data: url.slice(inline[0].length),
  };
  return withCacheControl({ type: 'image', source }, part);
}

function documentBlock({ data, filename }: InlinePdf, part: Part): DocumentBlock {
  const source = { type: 'base64', media_type: 'application/pdf', data } as const;
  const block: DocumentBlock = { type: 'document', source };
  return withCacheControl(filename === null ? block : { ...block, title: filename }, part);
}

/** Null for a part that says nothing. A part of unknown type goes as it is: the vendor must refuse it, not we. */
function blockOf(given: JsonRecord, dropped: Set<string>): ContentBlock | null {
  const part: Part = given;
  if (part.type === 'text') return textBlock(textOf(part.text), part, dropped);
  if (part.type === 'refusal') return textBlock(textOf(part.refusal), part, dropped);
  if (part.type === 'image_url') return imageBlock(part, dropped);
  const pdf = part.type === 'file' ? inlinePdf(given) : null;
  return pdf === null ? given : documentBlock(pdf, part);
}

/**
 * Content of any message as Anthropic blocks; empty and whitespace-only texts are refused there and left out.
 * What else is lost is added to `dropped`.
 */
export function contentBlocks(content: Content, dropped: Set<string>): ContentBlock[] {
  if (content === null || content === undefined) return [];
  const parts: readonly JsonRecord[] =
    typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return parts.map((part) => blockOf(part, dropped)).filter((block) => block !== null);
}
