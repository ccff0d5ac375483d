import { textFields } from '../../core/answer/completion-accumulator.ts';
import type { Untrusted } from '../json-value.ts';
import { isRecord, textOf } from '../json-value.ts';
import type { CalledFunction, WireChoice, WireCompletion, WireMessage, WireToolCall } from './wire.ts';

function callBytes(calls: unknown): number {
  let bytes = 0;
  for (const call of Array.isArray(calls) ? calls : []) {
    const fragment: Untrusted<WireToolCall> = isRecord(call) ? call : {};
    const called: Untrusted<CalledFunction> = isRecord(fragment.function) ? fragment.function : {};
    bytes += Buffer.byteLength(textOf(called.arguments));
  }
  return bytes;
}

/** UTF-8 bytes of the texts and the arguments of calls in the deltas of one chunk. */
export function deltaTextBytes({ choices }: Untrusted<WireCompletion>): number {
  let bytes = 0;
  for (const choice of Array.isArray(choices) ? choices : []) {
    const given: Untrusted<WireChoice> = isRecord(choice) ? choice : {};
    const delta: Untrusted<WireMessage> = isRecord(given.delta) ? given.delta : {};
    for (const field of textFields) bytes += Buffer.byteLength(textOf(delta[field]));
    bytes += callBytes(delta.tool_calls);
  }
  return bytes;
}
