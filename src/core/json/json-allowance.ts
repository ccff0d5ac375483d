import type { EscapeTally } from './json-escapes.ts';
import { tallyEscapes } from './json-escapes.ts';
import type { JsonTally } from './json-tally.ts';
import { tallyJson } from './json-tally.ts';

/** What one request may make us read as JSON. */
export interface JsonCosts {
  /** Values and keys. */
  readonly values: number;
  /** Of long numbers, as `weightOf` counts them. */
  readonly longDigits: number;
  /** By their weight; Infinity: they are not counted. */
  readonly escapes: number;
}

export type JsonLimit = keyof JsonCosts | 'keys' | 'keyBytes';

/** A long number of three digits in its exponent and one before it: of no other text does a byte weigh as much. */
const mostWeightOfByte = 4;

const backslash = 0x5c;

function uncounted(text: Buffer): EscapeTally {
  const first = text.indexOf(backslash);
  return { weight: 0, spellsByNumber: first >= 0 && text.includes('\\u', first) };
}

/**
 * What one request has left of its costs, for its body and for the texts in it that are read as JSON later: a limit for
 * each of them would be none, since there may be thousands.
 */
export class JsonAllowance {
  #left: JsonCosts;

  constructor(costs: JsonCosts) {
    this.#left = costs;
  }

  /** True when no texts of so many characters in all, whatever they hold, go beyond it. */
  hasRoomFor(length: number): boolean {
    const { values, longDigits, escapes } = this.#left;
    return length * mostWeightOfByte <= Math.min(longDigits, escapes) && length <= values;
  }

  /** Takes what a text costs; what there is not enough of. `keys`: of one object. */
  take(text: Buffer, keys: number): (JsonTally & EscapeTally) | JsonLimit {
    const left = this.#left;
    const escaped =
      left.escapes === Number.POSITIVE_INFINITY ? uncounted(text) : tallyEscapes(text, left.escapes);
    if (escaped === null) return 'escapes';
    const { values, longDigits } = left;
    const tally = tallyJson(text, { values, longDigits, keys, depth: Number.POSITIVE_INFINITY });
    // How deep it is costs nothing here.
    if (typeof tally === 'string') return tally as JsonLimit;
    this.#left = {
      values: values - tally.values,
      longDigits: longDigits - tally.longDigits,
      escapes: left.escapes - escaped.weight,
    };
    return { ...tally, ...escaped };
  }
}
