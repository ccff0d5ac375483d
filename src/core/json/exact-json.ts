import { isExact, mostLooked } from './inexact-number.ts';
import { JsonPath } from './json-path.ts';
import { tallyJson } from './json-tally.ts';
import { keepAs } from './kept-number.ts';
import { mostLongDigits, walkLongNumbers } from './long-numbers.ts';

/** Texts with more long numbers than anybody means: reading them exactly would hold up everybody else. */
export class TooManyNumbersError extends Error {}

const unbounded = {
  values: Number.POSITIVE_INFINITY,
  depth: Number.POSITIVE_INFINITY,
  keys: Number.POSITIVE_INFINITY,
};

/**
 * Reads the texts of one request, or of one answer: what their long numbers cost is counted over all of them, or many
 * texts would cost many times what one may.
 */
export class ExactReader {
  #digitsLeft = mostLongDigits;
  #looksLeft = mostLooked;

  /**
   * As `JSON.parse`, but a number that a double cannot hold (12345678901234567890, 1e400) stays an object that
   * `JSON.stringify` writes with the digits it came with. Such an object is no number to any reader: it is frozen, and
   * `isKeptNumber` knows it. `bytes` is the same text, `longDigits` what `tallyJson` says of it. Where no number is
   * long, nothing is added to the parse: a reviver would be asked about each value, half a second for the largest
   * answers.
   *
   * Throws SyntaxError, and TooManyNumbersError.
   */
  parse(text: string, bytes: Buffer = Buffer.from(text), longDigits = this.#tally(bytes)): unknown {
    // Before the parse, which reads all of their digits.
    if (longDigits > this.#digitsLeft) throw new TooManyNumbersError('too many digits in long numbers');
    this.#digitsLeft -= longDigits;
    const root = JSON.parse(text) as unknown;
    return longDigits === 0 ? root : this.#keepDigits(root, bytes);
  }

  #tally(bytes: Buffer): number {
    const tally = tallyJson(bytes, { ...unbounded, longDigits: this.#digitsLeft });
    return typeof tally === 'string' ? Number.POSITIVE_INFINITY : tally.longDigits;
  }

  #keepDigits(parsed: unknown, bytes: Buffer): unknown {
    let root = parsed;
    const path = new JsonPath(bytes);
    walkLongNumbers(bytes, path, (from, to) => {
      const digits = bytes.toString('latin1', from, to);
      // Most are written as we would write them; the closer look takes four times as long.
      if (String(Number(digits)) === digits) return false;
      this.#looksLeft -= 1;
      if (this.#looksLeft >= 0 && isExact(digits)) return false;
      const keep = keepAs(digits);
      // A text that is a number.
      if (path.depth === 0) root = keep(root);
      else path.replaceIn(root, keep);
      return false;
    });
    return root;
  }
}

/** As `ExactReader` does, for a text that is all there is to read. */
export function parseExactly(text: string): unknown {
  return new ExactReader().parse(text);
}
