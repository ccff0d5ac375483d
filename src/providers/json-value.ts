import { answerBounds } from '../core/answer/answer-limits.ts';
import { ExactReader, TooManyNumbersError } from '../core/json/exact-json.ts';
import { tallyEscapes } from '../core/json/json-escapes.ts';
import type { JsonBounds, Tallied } from '../core/json/json-tally.ts';
import { tallyJson } from '../core/json/json-tally.ts';
import { isKeptNumber } from '../core/json/kept-number.ts';

/** A JSON object as parsed: nothing is known of its fields. */
export type JsonRecord = Record<string, unknown>;

/** A vendor's object, by the names its documentation gives: any may be missing, and nothing is known of the values. */
export type Untrusted<T> = { -readonly [K in keyof T]?: unknown };

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isKeptNumber(value);
}

/**
 * One event of a stream: a burst of two hundred such tokens. A stream may be nothing but such events, so each has this
 * allowance of its own: they come one by one, and a second of it takes as long as the vendor takes to send it.
 */
export const eventBounds: JsonBounds = { ...answerBounds, values: 50_000 };

/**
 * The parsed value with its digits kept, or undefined when `text` is not JSON or beyond an answer's bounds. `reader`:
 * of all texts of the request or answer.
 */
export function parseJson(text: string, reader = new ExactReader()): unknown {
  const bytes = Buffer.from(text);
  const tally = tallyJson(bytes, answerBounds);
  if (typeof tally === 'string') return undefined;
  return exactValue(reader, text, bytes, tally.longDigits);
}

/** A vendor's bytes, read: their text, and its value as `parseJson` gives it. */
export interface JsonText {
  readonly text: string;
  readonly value: unknown;
}

/** Of longer answers escapes are counted: each takes as long as twenty plain bytes to read and to write again. */
const longAnswerBytes = 1024 * 1024;
/** A quarter of what a body may have: the longest answers that models write have 100,000. */
const mostAnswerEscapes = 500_000;

/** Reads what a vendor sent as JSON. Null: beyond the bounds, as `tally` says, or by its escapes; it is not parsed. */
export function readJson(
  bytes: Buffer,
  bounds: JsonBounds,
  tally: Tallied = tallyJson(bytes, bounds),
): JsonText | null {
  if (typeof tally === 'string') return null;
  if (bytes.length > longAnswerBytes && tallyEscapes(bytes, mostAnswerEscapes) === null) return null;
  const text = bytes.toString('utf8').trim();
  // What says nothing is no JSON: to have the parser say so costs 15 µs, thousands of times a read.
  if (text === '') return { text, value: undefined };
  return { text, value: exactValue(new ExactReader(), text, bytes, tally.longDigits) };
}

/** The value as `ExactReader` gives it; undefined, which JSON cannot say, when it is no JSON or has too many digits. */
function exactValue(reader: ExactReader, text: string, bytes: Buffer, longDigits: number): unknown {
  try {
    return reader.parse(text, bytes, longDigits);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TooManyNumbersError) return undefined;
    throw error;
  }
}

/**
 * A text, or none where one may be left out. Anything else is not to be passed over: the answer would lack it, and look
 * whole.
 */
export function mayBeText(value: unknown): boolean {
  return typeof value === 'string' || value === null || value === undefined;
}

/** The string, or '' for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
