import type { JsonRecord } from './json-value.ts';
import { isRecord, parseJson, textOf } from './json-value.ts';

/** Enough for any vendor's sentence; the rest would only fill logs. */
const maxMessageLength = 500;
const maxCodeLength = 100;

export interface ErrorBody {
  readonly message: string;
  readonly code: string | null;
}

function clean(text: string, limit: number): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, limit);
}

function codeOf(error: JsonRecord): string | null {
  for (const value of [error['code'], error['type']]) {
    if (typeof value === 'number') return String(value);
    if (typeof value === 'string' && value !== '') return clean(value, maxCodeLength);
  }
  return null;
}

/**
 * The vendor's words in any shape seen: `{"error": {message, type, code}}`, `{"error": "text"}`,
 * `{"object": "error", message}`, `{"detail": …}` or plain text. HTML is a proxy speaking and says nothing.
 */
export function readErrorValue(value: unknown): ErrorBody {
  if (typeof value === 'string') return { message: clean(value, maxMessageLength), code: null };
  if (!isRecord(value)) return { message: '', code: null };
  const inner = value['error'];
  if (typeof inner === 'string' && inner !== '') {
    return { message: clean(inner, maxMessageLength), code: codeOf(value) };
  }
  const error = isRecord(inner) ? inner : value;
  const message = textOf(error['message']) || textOf(error['detail']) || JSON.stringify(error);
  return { message: clean(message, maxMessageLength), code: codeOf(error) };
}

/** As `readErrorValue`, of a body as it came; an empty message when it holds nothing to quote. */
export function readErrorBody(body: Buffer): ErrorBody {
  const text = body.toString('utf8');
  const value = parseJson(text);
  if (value !== undefined) return readErrorValue(value);
  return readErrorValue(/^\s*</.test(text) ? '' : text);
}

/** True for a 200 body or a stream event that is an error object in one of the shapes in use. */
export function isErrorValue(value: JsonRecord): boolean {
  const error = value['error'];
  if (error !== undefined && error !== null && error !== '' && error !== false) return true;
  return value['object'] === 'error' || (value['type'] === 'error' && value['choices'] === undefined);
}
