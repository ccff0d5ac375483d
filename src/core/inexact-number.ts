import { endOfString } from './json-values.ts';

/** A number of fewer digits, a point among them perhaps, is what it was after it was parsed and written again. */
const safeLength = 15;
/** What a double can hold ends at 308 and begins at -324: shorter exponents lose nothing. */
const longExponent = /[0-9][eE][+-]?[0-9]{3}/;

/** Numbers of that length in one body that are looked at, at 2 us each; the next one counts as inexact. */
const mostLooked = 10_000;

/** Longer ones count as inexact unseen: a million digits take a tenth of a second to read. */
const longestLooked = 1_000;

const [quote, comma, colon, minus, point, zero, nine] = [0x22, 0x2c, 0x3a, 0x2d, 0x2e, 0x30, 0x39];
const [plus, smallE, largeE] = [0x2b, 0x65, 0x45];
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d];

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= zero && byte <= nine;
const isDigitOrPoint = (byte: number | undefined): boolean => isDigit(byte) || byte === point;

/** True when more than `safeLength` digits and points stand in a row: one byte in sixteen is looked at to find them. */
function hasLongNumber(json: Buffer): boolean {
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

/** False when writing the parsed number again gives another value: 2^53 + 1, 1e400, twenty digits. */
function isExact(text: string): boolean {
  const value = Number(text);
  return Number.isFinite(value) && decimalOf(String(value)) === decimalOf(text);
}

/** Where a walk through a JSON text stands: on each level an index, or the place of a key. */
class Path {
  readonly #json: Buffer;
  readonly #isArray: boolean[] = [];
  /** Index, or where the key begins; where it ends. */
  readonly #from: number[] = [];
  readonly #to: number[] = [];

  constructor(json: Buffer) {
    this.#json = json;
  }

  enter(isArray: boolean): void {
    this.#isArray.push(isArray);
    this.#from.push(0);
    this.#to.push(0);
  }

  leave(): void {
    this.#isArray.pop();
    this.#from.pop();
    this.#to.pop();
  }

  next(): void {
    const top = this.#from.length - 1;
    if (this.#isArray[top] === true) this.#from[top] = (this.#from[top] as number) + 1;
  }

  key(from: number, to: number): void {
    this.#from[this.#from.length - 1] = from;
    this.#to[this.#to.length - 1] = to;
  }

  toString(): string {
    const text = this.#from.map((from, level) => {
      if (this.#isArray[level] === true) return `[${from}]`;
      return `.${JSON.parse(this.#json.toString('utf8', from, this.#to[level])) as string}`;
    });
    return text.join('').replace(/^\./, '');
  }
}

const isOfNumber = (byte: number | undefined): boolean =>
  isDigitOrPoint(byte) || byte === minus || byte === plus || byte === smallE || byte === largeE;

/** As `inexactNumberPath`, once there is something to look for. */
function walk(json: Buffer): string | null {
  const path = new Path(json);
  let looked = 0;
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
      if (at - from < safeLength && !hasExponent) continue;
      looked += 1;
      const isLost =
        looked > mostLooked || at - from > longestLooked || !isExact(json.toString('latin1', from, at + 1));
      if (isLost && path.toString() !== 'seed') return path.toString();
    }
  }
  return null;
}

/**
 * The path (`tools[0].function.parameters.maximum`) of the first number in a valid JSON object that this process could
 * not pass on with the same value (SPEC 4.5, rule 2); null when there is none. `seed` has a rule of its own
 * (core/chat-request.ts). `text` is the same object as text. Where no number is long, two searches are all it costs.
 */
export function inexactNumberPath(json: Buffer, text: string): string | null {
  return hasLongNumber(json) || longExponent.test(text) ? walk(json) : null;
}
