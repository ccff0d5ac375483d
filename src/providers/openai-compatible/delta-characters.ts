import { textFields } from '../../core/answer/completion-accumulator.ts';
import type { Untrusted } from '../json-value.ts';
import { isRecord, textOf } from '../json-value.ts';
import type { CalledFunction, WireChoice, WireCompletion, WireMessage, WireToolCall } from './wire.ts';

function callCharacters(calls: unknown): number {
  let characters = 0;
  for (const call of Array.isArray(calls) ? calls : []) {
    const fragment: Untrusted<WireToolCall> = isRecord(call) ? call : {};
    const called: Untrusted<CalledFunction> = isRecord(fragment.function) ? fragment.function : {};
    characters += textOf(called.arguments).length;
  }
  return characters;
}

/** Of the texts and the arguments of calls in the deltas of one chunk. */
export function deltaCharacters({ choices }: Untrusted<WireCompletion>): number {
  let characters = 0;
  for (const choice of Array.isArray(choices) ? choices : []) {
    const given: Untrusted<WireChoice> = isRecord(choice) ? choice : {};
    const delta: Untrusted<WireMessage> = isRecord(given.delta) ? given.delta : {};
    for (const field of textFields) characters += textOf(delta[field]).length;
    characters += callCharacters(delta.tool_calls);
  }
  return characters;
}
