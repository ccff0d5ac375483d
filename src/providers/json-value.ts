import { isKeptNumber, parseExactly, TooManyNumbersError } from '../core/json/exact-json.ts';
import type { JsonBounds } from '../core/json/json-values.ts';
import { isBeyond } from '../core/json/json-values.ts';

/** A JSON object as parsed: nothing is known of its fields. */
export type JsonRecord = Record<string, unknown>;

/** A vendor's object, by the names its documentation gives: any may be missing, and nothing is known of the values. */
export type Untrusted<T> = { -readonly [K in keyof T]?: unknown };

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isKeptNumber(value);
}

/** `JSON.parse` takes any depth, but `JSON.stringify` overflows the stack from about 5,000 levels on. */
const maxDepth = 1000;
/** Of one object. No vendor's has a hundred; 100,000 different ones take 40 ms to parse and 100 ms to copy. */
const maxKeys = 4096;

/**
 * A whole answer: the log-probabilities of a thousand tokens with twenty alternatives each fit, and a hostile
 * one is parsed in less than a tenth of a second and 20 MiB.
 */
export const answerBounds: JsonBounds = { values: 250_000, depth: maxDepth, keys: maxKeys };
/** One event of a stream: a burst of two hundred such tokens. A stream may be nothing but such events. */
export const eventBounds: JsonBounds = { values: 50_000, depth: maxDepth, keys: maxKeys };

/** The value as `parseExactly` gives it; undefined, which JSON cannot say, when it is no JSON; null: not to be read. */
function exactValue(text: string, bytes: Buffer): { readonly value: unknown } | null {
  try {
    return { value: parseExactly(text, bytes) };
  } catch (error) {
    return error instanceof TooManyNumbersError ? null : { value: undefined };
  }
}

/** The parsed value with its digits kept, or undefined when `text` is not JSON or beyond an answer's bounds. */
export function parseJson(text: string): unknown {
  const bytes = Buffer.from(text);
  return isBeyond(bytes, answerBounds) ? undefined : exactValue(text, bytes)?.value;
}

/** A vendor's bytes, read: their text, and its value as `parseJson` gives it. */
export interface JsonText {
  readonly text: string;
  readonly value: unknown;
}

/** Reads what a vendor sent as JSON. Null when it is beyond the bounds: then it is hardly ever parsed. */
export function readJson(bytes: Buffer, bounds: JsonBounds): JsonText | null {
  if (isBeyond(bytes, bounds)) return null;
  const text = bytes.toString('utf8').trim();
  const read = exactValue(text, bytes);
  return read === null ? null : { text, value: read.value };
}

/** The string, or '' for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
