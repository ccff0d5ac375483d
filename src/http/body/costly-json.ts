import { InvalidRequestError } from '../../core/errors.ts';
import type { JsonCosts, JsonLimit } from '../../core/json/json-allowance.ts';
import { JsonAllowance } from '../../core/json/json-allowance.ts';
import { longestKeyBytes } from '../../core/json/json-tally.ts';
import { mostLongDigits } from '../../core/json/long-numbers.ts';

/**
 * Escapes in the strings of one body, of which ten times as many would be parsed and written again in half a second.
 * Code has one in 25 bytes; two million characters spelled by number are more than any model takes.
 */
export const mostEscapes = 2_000_000;

/**
 * Of one body and the JSON in its tool-call arguments together. Values and keys are many times what a chat of the
 * longest context needs, and no more than is parsed, copied and put in order in a fifth of a second. How deep a body
 * may be is in the tables, which the route knows.
 */
const costs: JsonCosts = { values: 120_000, longDigits: mostLongDigits, escapes: mostEscapes };

/** Keys of one object: to put them in order, and to copy it, takes longer than for as many values. */
export const mostKeys = 10_000;

/** What one request may make us read as JSON. A short body has no room for so many escapes: they are not counted. */
export function jsonAllowanceFor(body: Buffer): JsonAllowance {
  const isShort = body.length <= mostEscapes / 2;
  return new JsonAllowance(isShort ? { ...costs, escapes: Number.POSITIVE_INFINITY } : costs);
}

const beyond = {
  values: { code: 'too_many_values', hold: `holds more than ${costs.values} values and keys` },
  keys: { code: 'too_many_keys', hold: `holds an object of more than ${mostKeys} keys` },
  keyBytes: { code: 'too_many_keys', hold: `holds a key of more than ${longestKeyBytes} bytes` },
  escapes: {
    code: 'too_many_escapes',
    hold: `holds more than ${costs.escapes} escapes in its strings (half a surrogate pair counts as ten); send characters as they are, in UTF-8`,
  },
  longDigits: {
    code: 'inexact_number',
    hold: `holds more than ${costs.longDigits} digits in long numbers (each counts as twenty at least)`,
  },
} as const satisfies Record<JsonLimit, object>;

/** 422 for a body that costs too much to read; `param`: whose JSON was too much, null: its own. */
export function costlyJson(limit: JsonLimit, param: string | null): InvalidRequestError {
  const { code, hold } = beyond[limit];
  const what = param === null ? 'The body' : `The body, with the JSON in ${param},`;
  return new InvalidRequestError(`${what} ${hold}.`, param, code);
}
