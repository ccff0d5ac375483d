import type { JsonBounds } from '../json/json-tally.ts';
import { mostLongDigits } from '../json/long-numbers.ts';

/** `n` is at most 128 at any vendor, and 10 here: more choices in one answer or stream are hostile. */
export const maxChoices = 128;

/** Calls in one answer or stream, of all choices together: more than any client's accumulator takes. */
export const maxToolCalls = 1024;

/** `JSON.parse` takes any depth, but `JSON.stringify` overflows the stack from about 5,000 levels on. */
const maxDepth = 1000;
/** Of one object. No vendor's has a hundred; 100,000 different ones take 40 ms to parse and 100 ms to copy. */
const maxKeys = 4096;

/**
 * A whole answer: the log-probabilities of a thousand tokens with twenty alternatives each fit, and a hostile
 * one is parsed in less than a tenth of a second and 20 MiB.
 */
export const answerBounds: JsonBounds = {
  values: 250_000,
  depth: maxDepth,
  keys: maxKeys,
  longDigits: mostLongDigits,
};
