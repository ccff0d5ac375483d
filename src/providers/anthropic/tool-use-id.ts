import { createHash } from 'node:crypto';
import { textOf } from '../json-value.ts';

/** What the Messages API takes for an id; all others of the request are refused with it. */
const proper = /^[a-zA-Z0-9_-]+$/;

/** Of a foreign id, which may be a long one: with the digest behind it, less than any vendor's own limit. */
const keptLength = 40;
/** Of the digest, 72 bits: no two ids of a conversation share them. */
const digestLength = 12;

/**
 * Ids of other vendors may hold characters that Anthropic refuses (`functions.f:0`). The digest of the whole id tells
 * apart those that differ in nothing else, and makes the same of it in a call, its result and every later request.
 */
function properId(given: string): string {
  if (proper.test(given)) return given;
  const readable = given.slice(0, keptLength).replace(/[^a-zA-Z0-9_-]/g, '_');
  return `${readable}_${createHash('sha256').update(given).digest('base64url').slice(0, digestLength)}`;
}

/** Where clients write ids, by what has them. */
const idFields = { call: 'messages[].tool_calls[].id', result: 'messages[].tool_call_id' } as const;

/**
 * The ids of the calls and results of one conversation. One that is missing is made up, and named in `dropped`: the
 * first result without an id is that of the first call without one, and so on.
 */
export class ToolUseIds {
  readonly #dropped: Set<string>;
  readonly #nameless = { call: 0, result: 0 };

  constructor(dropped: Set<string>) {
    this.#dropped = dropped;
  }

  of(what: keyof typeof idFields, given: unknown): string {
    const id = textOf(given);
    if (id !== '') return properId(id);
    this.#dropped.add(idFields[what]);
    this.#nameless[what] += 1;
    return `call_without_id_${this.#nameless[what]}`;
  }
}
