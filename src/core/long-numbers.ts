import type { JsonPath } from './json-path.ts';
import { endOfString } from './json-values.ts';

/** A number of fewer digits, a point among them perhaps, is what it was after it was parsed and written again. */
const safeLength = 15;
/** What a double can hold ends at 308 and begins at -324: shorter exponents lose nothing. */
const longExponent = /[0-9][eE][+-]?[0-9]{3}/;

const [quote, comma, colon, minus, point, zero, nine] = [0x22, 0x2c, 0x3a, 0x2d, 0x2e, 0x30, 0x39];
const [plus, smallE, largeE] = [0x2b, 0x65, 0x45];
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d];

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= zero && byte <= nine;
const isDigitOrPoint = (byte: number | undefined): boolean => isDigit(byte) || byte === point;
const isOfNumber = (byte: number | undefined): boolean =>
  isDigitOrPoint(byte) || byte === minus || byte === plus || byte === smallE || byte === largeE;

/** True when more than `safeLength` digits and points stand in a row: one byte in sixteen is looked at to find them. */
function hasLongRun(json: Buffer): boolean {
  const step = safeLength + 1;
  for (let at = safeLength; at < json.length; at += step) {
    if (!isDigitOrPoint(json[at])) continue;
    let first = at;
    while (isDigitOrPoint(json[first - 1])) first -= 1;
    let last = at;
    while (isDigitOrPoint(json[last + 1])) last += 1;
    if (last - first + 1 >= step) return true;
    at += Math.floor((last - at) / step) * step;
  }
  return false;
}

/** False when no number of a JSON text can lose anything in a double: two searches are all that this costs. */
export function mayHoldLongNumber(json: Buffer, text: string): boolean {
  return hasLongRun(json) || longExponent.test(text);
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
