import { JsonPath } from './json-path.ts';
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
 * The path (`tools[0].function.parameters.maximum`) of the first number in a valid JSON object that this process could
 * not pass on with the same value (SPEC 4.5, rule 2); null when there is none. `seed` has a rule of its own
 * (core/request/chat-request.ts). `tallyJson` says whether there is anything to look at.
 */
export function inexactNumberPath(json: Buffer): string | null {
  const path = new JsonPath(json);
  let looked = 0;
  let found: string | null = null;
  walkLongNumbers(json, path, (from, to) => {
    looked += 1;
    const number = json.toString('latin1', from, to);
    const isLost = looked > mostLooked || !(isExact(number) || isPrintedFraction(number));
    if (isLost && path.toString() !== 'seed') found = path.toString();
    return found !== null;
  });
  return found;
}
