import type { JsonPath } from './json-path.ts';
import { endOfString } from './json-values.ts';

/** A number of fewer digits, a point among them perhaps, is what it was after it was parsed and written again. */
const safeLength = 15;
/** What a double can hold ends at 308 and begins at -324: exponents of fewer digits lose nothing. */
const longExponent = 3;

const [quote, comma, colon, minus, point, zero, nine] = [0x22, 0x2c, 0x3a, 0x2d, 0x2e, 0x30, 0x39];
const [plus, smallE, largeE] = [0x2b, 0x65, 0x45];
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d];

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= zero && byte <= nine;
const isDigitOrPoint = (byte: number | undefined): boolean => isDigit(byte) || byte === point;
const isOfNumber = (byte: number | undefined): boolean =>
  isDigitOrPoint(byte) || byte === minus || byte === plus || byte === smallE || byte === largeE;

/** What begins something worth a look outside of strings: a string, or the digits of a number. */
const begins = new Uint8Array(256);
const [beginsString, beginsNumber] = [1, 2];
begins[quote] = beginsString;
begins.fill(beginsNumber, zero, nine + 1);

/**
 * Digits of all numbers of a JSON text that can lose something in a double, points and leading zeros among them: 0 when
 * there is none. Ends as soon as it is beyond `most`. Strings are passed over by one search each. Text that is no JSON
 * may be judged either way.
 */
export function tallyLongDigits(json: Buffer, most: number): number {
  let digits = 0;
  for (let at = 0; at < json.length; at += 1) {
    const kind = begins[json[at] as number];
    if (kind === beginsString) at = endOfString(json, at + 1);
    else if (kind === beginsNumber) {
      const from = at;
      while (isDigitOrPoint(json[at + 1])) at += 1;
      const exponent = exponentLength(json, at + 1);
      if (at - from < safeLength && exponent < longExponent) continue;
      digits += at + 1 - from + exponent;
      if (digits > most) return digits;
      at += exponent;
    }
  }
  return digits;
}

/** Digits of the exponent that begins at `at`; 0 when there is none. */
function exponentLength(json: Buffer, at: number): number {
  if (json[at] !== smallE && json[at] !== largeE) return 0;
  const from = json[at + 1] === plus || json[at + 1] === minus ? at + 2 : at + 1;
  let end = from;
  while (isDigit(json[end])) end += 1;
  return end - from;
}

/**
 * Walks through a valid JSON text and shows each number that is long enough to lose something in a double: from its
 * first byte to behind its last one. `path` stands at it then. Ends early when `visit` says true.
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
