import type { JsonRecord } from '../json-value.ts';
import { isRecord, textOf } from '../json-value.ts';
import { toolCallId } from '../tool-call-id.ts';
import { finishReason } from './finish-reason.ts';

/** Some servers give the arguments as an object, or as '' when there are none. */
function properArguments(given: unknown): string {
  if (typeof given === 'string') return given.trim() === '' ? '{}' : given;
  return given === undefined || given === null ? '{}' : JSON.stringify(given);
}

function properToolCall(given: unknown, makeId: () => string): unknown {
  if (!isRecord(given) || (given['type'] !== undefined && given['type'] !== 'function')) return given;
  const called = isRecord(given['function']) ? given['function'] : {};
  const id = textOf(given['id']);
  const argumentsText = properArguments(called['arguments']);
  if (
    id !== '' &&
    given['type'] === 'function' &&
    typeof called['name'] === 'string' &&
    argumentsText === called['arguments']
  ) {
    return given;
  }
  return {
    ...given,
    id: id === '' ? makeId() : id,
    type: 'function',
    function: { ...called, name: textOf(called['name']), arguments: argumentsText },
  };
}

/** Text of content that came as parts; null stays null. */
function properContent(given: unknown): string | null {
  if (typeof given === 'string') return given;
  if (!Array.isArray(given)) return null;
  return given.map((part) => (isRecord(part) ? textOf(part['text']) : '')).join('');
}

/** The same list when every call has its form, null as it is; undefined for anything that is no list. */
function properToolCalls(given: unknown, choiceIndex: number, seed: string): unknown {
  if (given === undefined || given === null) return given;
  if (!Array.isArray(given)) return undefined;
  const calls = given
    .filter(isRecord)
    .map((call, index) => properToolCall(call, () => toolCallId(seed, choiceIndex, index)));
  const same = calls.length === given.length && calls.every((call, index) => call === given[index]);
  return same ? given : calls;
}

function properMessage(given: JsonRecord, choiceIndex: number, seed: string): JsonRecord {
  const calls = properToolCalls(given['tool_calls'], choiceIndex, seed);
  const callsChanged = calls !== given['tool_calls'];
  const content = properContent(given['content']);
  if (given['role'] === 'assistant' && content === given['content'] && !callsChanged) return given;
  const message: JsonRecord = { ...given, role: 'assistant', content };
  if (calls === undefined) delete message['tool_calls'];
  else message['tool_calls'] = calls;
  return message;
}

/**
 * One choice in the form SPEC 2.3 promises: an index, an assistant message, a finish reason, and tool calls
 * whose arguments are JSON text. The same object when it has that form; null when there is no message.
 */
export function properChoice(given: unknown, position: number, seed: string): JsonRecord | null {
  if (!isRecord(given) || !isRecord(given['message'])) return null;
  const index = Number.isSafeInteger(given['index']) ? (given['index'] as number) : position;
  const message = properMessage(given['message'], index, seed);
  const calls = message['tool_calls'];
  const reason = finishReason(given['finish_reason'], Array.isArray(calls) && calls.length > 0);
  const same = index === given['index'] && message === given['message'] && reason === given['finish_reason'];
  return same ? given : { ...given, index, message, finish_reason: reason };
}
