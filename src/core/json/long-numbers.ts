import type { JsonPath } from './json-path.ts';
import { endOfString } from './json-string.ts';

/** A number of fewer digits, a point among them perhaps, is what it was after it was parsed and written again. */
const safeLength = 15;
/** What a double can hold ends at 308 and begins at -324: exponents of fewer digits lose nothing. */
const longExponent = 3;

/** True when a number of so many digits, and digits of its exponent, can lose something in a double. */
export function isLong(length: number, exponentLength: number): boolean {
  return length > safeLength || exponentLength >= longExponent;
}

/** To look at a number, and to keep it as it was written, costs half a microsecond however short it is. */
const leastWeight = 20;

/** What a long number counts: its digits, points and leading zeros among them, but as many as a usual one at least. */
export function weightOf(digits: number): number {
  return Math.max(digits, leastWeight);
}

/**
 * Digits of all long numbers of one request, or of one answer. Fifty thousand numbers of twenty: the log-probabilities
 * of a thousand tokens with twenty alternatives each are 21,000. Each digit is read three times, and those between two
 * doubles take up to 100 ns each: 20 MB of them held up everybody for 0.8 s, as many as these take 0.1 s at most.
 */
export const mostLongDigits = 1_000_000;

const [quote, comma, colon, minus, point, zero, nine] = [0x22, 0x2c, 0x3a, 0x2d, 0x2e, 0x30, 0x39];
const [plus, smallE, largeE] = [0x2b, 0x65, 0x45];
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d];

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= zero && byte <= nine;
const isOfNumber = (byte: number | undefined): boolean =>
  isDigit(byte) || byte === point || byte === minus || byte === plus || byte === smallE || byte === largeE;

/**
 * Walks through a valid JSON text and shows each number that is long enough to lose something in a double, or has an
 * exponent: from its first byte to behind its last one. `path` stands at it then. Ends early when `visit` says true.
 * `tallyJson` says whether there is anything to look at.
 */
export function walkLongNumbers(
  json: Buffer,
  path: JsonPath,
  visit: (from: number, to: number) => boolean,
): void {
  let [textFrom, textTo] = [0, 0];
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at] as number;
    if (byte === quote) {
      textFrom = at;
      at = endOfString(json, at + 1);
      textTo = at + 1;
    } else if (byte === openBrace || byte === openBracket) path.enter(byte === openBracket);
    else if (byte === closeBrace || byte === closeBracket) path.leave();
    else if (byte === comma) path.next();
    else if (byte === colon) path.key(textFrom, textTo);
    else if (byte === minus || isDigit(byte)) {
      const from = at;
      let hasExponent = false;
      while (isOfNumber(json[at + 1])) {
        at += 1;
        if (json[at] === smallE || json[at] === largeE) hasExponent = true;
      }
      if ((at - from >= safeLength || hasExponent) && visit(from, at + 1)) return;
    }
  }
}
