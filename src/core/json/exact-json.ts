import { isExact, mostLooked } from './inexact-number.ts';
import { JsonPath } from './json-path.ts';
import { tallyLongDigits, walkLongNumbers } from './long-numbers.ts';

declare global {
  /** The proposal "JSON.parse source text access", which Node has since 21 and the library of types has not. */
  interface JSON {
    /** An object that `JSON.stringify` writes as `text`, a JSON number as it stands. */
    rawJSON(text: string): object;
    isRawJSON(value: unknown): boolean;
  }
}

/**
 * Numbers of more than fifteen digits in one text, at half a microsecond each. The log-probabilities of a thousand
 * tokens with twenty alternatives each are 21,000.
 */
const mostLongNumbers = 50_000;
/**
 * Digits of these numbers in one text: fifty thousand of twenty. Each is read three times, and those between two
 * doubles take up to 100 ns a digit: 17 MB of them held up everybody for 0.8 s, as many as these take 0.1 s at most.
 */
const mostLongDigits = 1_000_000;

/** A text with more long numbers than anybody means: reading it exactly would hold up everybody else. */
export class TooManyNumbersError extends Error {}

/** True for a number that is kept as it was written. */
export function isKeptNumber(value: unknown): boolean {
  return typeof value === 'object' && value !== null && JSON.isRawJSON(value);
}

/**
 * As `JSON.parse`, but a number that a double cannot hold (12345678901234567890, 1e400) stays an object that
 * `JSON.stringify` writes with the digits it came with. Such an object is no number to any reader: it is frozen, and
 * `isKeptNumber` knows it. `bytes` is the same text. Where no number is long, one search is all it costs beside the
 * parse: a reviver would be asked about each value, half a second for the largest answers.
 *
 * Throws SyntaxError, and TooManyNumbersError.
 */
export function parseExactly(text: string, bytes: Buffer = Buffer.from(text)): unknown {
  // Before the parse, which reads all of their digits.
  const longDigits = tallyLongDigits(bytes, mostLongDigits);
  if (longDigits > mostLongDigits) throw new TooManyNumbersError('too many digits in long numbers');
  let root = JSON.parse(text) as unknown;
  if (longDigits === 0) return root;
  const path = new JsonPath(bytes);
  let count = 0;
  let looked = 0;
  walkLongNumbers(bytes, path, (from, to) => {
    count += 1;
    if (count > mostLongNumbers) throw new TooManyNumbersError('too many long numbers');
    const digits = bytes.toString('latin1', from, to);
    const number = Number(digits);
    // Most are written as we would write them; the closer look takes four times as long.
    if (String(number) === digits) return false;
    looked += 1;
    if (looked <= mostLooked && isExact(digits)) return false;
    const keep = (value: unknown): unknown =>
      isKeptNumber(value) || Object.is(value, number) ? JSON.rawJSON(digits) : value;
    if (path.isOutside) root = keep(root);
    else path.replaceIn(root, keep);
    return false;
  });
  return root;
}
