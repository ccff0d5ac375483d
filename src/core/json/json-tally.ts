import { endOfString } from './json-string.ts';
import { isLong, weightOf } from './long-numbers.ts';

/** What a byte outside of strings means; 0: nothing. */
const meanings = new Uint8Array(256);
/** The begin of a value or key, an opening, a closing, a string, a number's first digit. */
const [begins, opens, closes, quotes, digits] = [1, 2, 3, 4, 5];
const [comma, colon, quote, zero, nine] = [0x2c, 0x3a, 0x22, 0x30, 0x39];
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d];
for (const byte of [comma, colon]) meanings[byte] = begins;
for (const byte of [openBracket, openBrace]) meanings[byte] = opens;
for (const byte of [closeBracket, closeBrace]) meanings[byte] = closes;
meanings[quote] = quotes;
meanings.fill(digits, zero, nine + 1);

const [plus, minus, point, smallE, largeE] = [0x2b, 0x2d, 0x2e, 0x65, 0x45];

/** Bounds of one JSON text; Infinity where there is none. */
export interface JsonBounds {
  /** Values and keys in all. */
  readonly values: number;
  /** Of arrays and objects in each other. */
  readonly depth: number;
  /** Keys of one object: different keys are what parsing and copying cost most for. */
  readonly keys: number;
  /** Of the numbers that can lose something in a double, as `weightOf` counts them. */
  readonly longDigits: number;
}

/** What a JSON text holds. */
export interface JsonTally {
  readonly values: number;
  readonly longDigits: number;
}

/**
 * Of a key, as it is written. V8 hashes texts of more than 16,383 characters by their length alone, and keeps keys in
 * one table: a thousand of one length take a second to parse, and each is compared with those of requests before.
 */
export const longestKeyBytes = 16_000;

/** What a text holds, or the bound that it is beyond. */
export type Tallied = JsonTally | keyof JsonBounds | 'keyBytes';

/**
 * What it will cost to parse a JSON text, or the bound that it is beyond. Three bytes of text (`{},`) become sixty of
 * heap and up to a microsecond of parsing; this looks before that happens, at some 4 ms per megabyte at worst. Strings
 * are passed over by one search each. Text that is no JSON may be judged either way.
 */
export function tallyJson(json: Buffer, bounds: JsonBounds): Tallied {
  const keysAt: number[] = [];
  let [values, longDigits, depth, stringBytes] = [0, 0, 0, 0];
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at] as number;
    const meaning = meanings[byte] as number;
    if (meaning === 0) continue;
    if (meaning === quotes) {
      const from = at + 1;
      at = endOfString(json, from);
      stringBytes = at - from;
    } else if (meaning === digits) {
      const from = at;
      at = lastDigit(json, at);
      const exponent = exponentLength(json, at + 1);
      if (!isLong(at + 1 - from, exponent)) continue;
      longDigits += weightOf(at + 1 - from + exponent);
      if (longDigits > bounds.longDigits) return 'longDigits';
      at += exponent;
    } else if (meaning === closes) {
      if (depth > 0) depth -= 1;
    } else {
      values += 1;
      if (values > bounds.values) return 'values';
      if (meaning === opens) {
        depth += 1;
        if (depth > bounds.depth) return 'depth';
        keysAt[depth] = 0;
      } else if (byte === colon) {
        const keys = (keysAt[depth] as number) + 1;
        if (keys > bounds.keys) return 'keys';
        if (stringBytes > longestKeyBytes) return 'keyBytes';
        keysAt[depth] = keys;
      }
    }
  }
  return { values, longDigits };
}

/** Where the digits that begin at `at` end, a point among them perhaps. */
function lastDigit(json: Buffer, at: number): number {
  let last = at;
  for (let next = last + 1; next < json.length; next += 1) {
    const byte = json[next] as number;
    if (meanings[byte] !== digits && byte !== point) break;
    last = next;
  }
  return last;
}

/** Digits of the exponent that begins at `at`; 0 when there is none. */
function exponentLength(json: Buffer, at: number): number {
  if (json[at] !== smallE && json[at] !== largeE) return 0;
  const from = json[at + 1] === plus || json[at + 1] === minus ? at + 2 : at + 1;
  let end = from;
  while (meanings[json[end] as number] === digits) end += 1;
  return end - from;
}
