import { JsonPath } from './json-path.ts';
import { keepAs } from './kept-number.ts';
import { walkLongNumbers } from './long-numbers.ts';

/** Numbers of a request, or of an answer, that are looked at closely, at 2 us each; the next one counts as inexact. */
export const mostLooked = 10_000;

/** Longer ones count as inexact unseen: a million digits take a tenth of a second to read. */
const longestLooked = 1_000;

const zero = 0x30;

/** Digits without zeros at the ends, and the power of ten of the last one: equal for equal decimals. */
function decimalOf(text: string): string {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const digits = (whole + fraction).replace(/^0+/, '');
  let end = digits.length;
  while (end > 0 && digits.charCodeAt(end - 1) === zero) end -= 1;
  if (end === 0) return '0';
  return `${digits.slice(0, end)}e${Number(exponent) - fraction.length + digits.length - end}`;
}

/** False when writing the parsed number again gives another value (2^53 + 1, 1e400, twenty digits) or might. */
export function isExact(text: string): boolean {
  if (text.length > longestLooked) return false;
  const value = Number(text);
  return Number.isFinite(value) && decimalOf(String(value)) === decimalOf(text);
}

/** So many digits tell every double from its neighbours: encoders in C, PHP and Swift print them all. */
const doubleDigits = 17;
/** Below it doubles have fewer digits than that. */
const leastNormal = 2 ** -1022;

/** True for a fraction as an encoder prints a double: its value is that double's. Integers have to be exact. */
function isPrintedFraction(text: string): boolean {
  if (text.length > longestLooked) return false;
  const [digits = '', exponent = '0'] = decimalOf(text).split('e');
  const size = Math.abs(Number(text));
  return (
    digits.length <= doubleDigits && Number(exponent) < 0 && size >= leastNormal && Number.isFinite(size)
  );
}

/**
 * Where our own schema of a chat reads what stands there: fields of the body, and items of which each must be an object
 * (`messages[0]`, `tools[0]`, `messages[0].content[0]`).
 */
function isReadOfChat(path: JsonPath): boolean {
  switch (path.depth) {
    case 1:
      return true;
    case 2:
      return path.isItemOf(1) && (path.isUnder(0, 'messages') || path.isUnder(0, 'tools'));
    case 4:
      return (
        path.isItemOf(3) && path.isUnder(2, 'content') && path.isItemOf(1) && path.isUnder(0, 'messages')
      );
    default:
      return false;
  }
}

/**
 * A number of a request that this process could not pass on with the same value stays as it was written
 * (`JSON.rawJSON`) wherever it is passed on unread: in tools, formats and further fields of messages (SPEC 4.5, rules 2
 * and 3). Elsewhere than in a chat everything is read. `value` was parsed from `json`, a valid text, and is changed in
 * place.
 *
 * Returns the path (`temperature`) of the first number that is read by us and cannot be kept, or of the first that is
 * one too many to look at; null when there is none. `seed` has a rule of its own (core/request/chat-request.ts).
 * `tallyJson` says whether there is anything to look at.
 */
export function keepLongNumbers(value: unknown, json: Buffer, isChat: boolean): string | null {
  const path = new JsonPath(json);
  let looked = 0;
  let refused: string | null = null;
  walkLongNumbers(json, path, (from, to) => {
    looked += 1;
    const digits = json.toString('latin1', from, to);
    const isBeyond = looked > mostLooked;
    if (!isBeyond && isExact(digits)) return false;
    const isRead = isBeyond || !isChat || isReadOfChat(path);
    if (!isRead) path.replaceIn(value, keepAs(digits));
    // The path is spelled of the one that is refused only: its keys may be long.
    else if (isBeyond || !(isPrintedFraction(digits) || path.isAt('seed'))) refused = path.toString();
    return refused !== null;
  });
  return refused;
}
