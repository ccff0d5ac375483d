import { jsonBytes } from '../core/json/json-bytes.ts';

/** Characters of an id or a name which a vendor says once and we keep: the longest seen have 64. */
export const maxNameLength = 1024;
/** The same of a call's id: where LiteLLM speaks for Gemini it holds the signature of a thought, up to 4,600 seen. */
export const maxCallIdLength = 16 * 1024;
/** What a character that is kept takes of the heap: of texts beyond Latin-1 two bytes. */
export const characterBytes = 2;
/**
 * Bytes, as JSON, of one that we say again with each event where the vendor does not: its events of 23 bytes would
 * become as many of kilobytes, a read of them megabytes that lie before a client who does not read.
 */
const maxRepeatedBytes = 128;

/** Why such an answer is unreadable. */
export const overfullAnswer = 'the answer holds more values than any answer has';

/** The name, or '' where there is none or one that is no name, or too long to be said with each event. */
export function keptName(value: unknown): string {
  if (typeof value !== 'string' || value.length > maxRepeatedBytes) return '';
  return jsonBytes(value) <= maxRepeatedBytes ? value : '';
}
