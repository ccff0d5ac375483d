import { maxChoices } from '../../core/answer/answer-limits.ts';
import { isKeptNumber } from '../../core/json/kept-number.ts';
import { isErrorValue } from '../error-body.ts';
import type { Untrusted } from '../json-value.ts';
import { isRecord, textOf } from '../json-value.ts';
import type { StreamContext } from '../provider.ts';
import { toolCallId } from '../tool-call-id.ts';
import { callsAreWhole } from '../whole-calls.ts';
import { finishReason } from './finish-reason.ts';
import { withoutForeignBlock } from './foreign-block.ts';
import type { CalledFunction, TextPart, WireChoice, WireMessage, WireToolCall } from './wire.ts';

/** What content in parts may hold: of an image, half the answer would be lost in silence. */
const textParts: ReadonlySet<unknown> = new Set(['text', 'output_text', undefined]);

/** Some servers give the arguments as an object, or as '' when there are none: those of a whole call are `{}`. */
function properArguments(given: unknown, isWhole: boolean): string {
  const text = typeof given === 'string' ? given : (given ?? null) === null ? '' : JSON.stringify(given);
  return isWhole && text.trim() === '' ? '{}' : text;
}

type Seeded = Pick<StreamContext, 'fallbackId'>;

/** What a choice says of its calls. */
interface CallsOf {
  readonly choiceIndex: number;
  /** By its finish reason. */
  readonly areWhole: boolean;
  /** By which ids of calls are made that have none: asked for only then. */
  readonly seeded: Seeded;
}

/** Null for what calls nothing: the vendor never made the call that could be made of it. */
function properToolCall(
  value: unknown,
  position: number,
  { choiceIndex, areWhole, seeded }: CallsOf,
): Untrusted<WireToolCall> | null {
  if (!isRecord(value)) return null;
  const given: Untrusted<WireToolCall> = value;
  if ((given.type ?? 'function') !== 'function') return given;
  const called: Untrusted<CalledFunction> = isRecord(given.function) ? given.function : {};
  const name = textOf(called.name);
  if (name === '') return null;
  const id = textOf(given.id);
  const argumentsText = properArguments(called.arguments, areWhole);
  if (id !== '' && given.type === 'function' && argumentsText === called.arguments) return given;
  return {
    ...given,
    id: id === '' ? toolCallId(seeded.fallbackId, choiceIndex, position) : id,
    type: 'function',
    function: { ...called, name, arguments: argumentsText },
  };
}

/** Content as text, null as it is, parts of text joined; undefined for what no text can be made of. */
export function properContent(given: unknown): string | null | undefined {
  if (typeof given === 'string') return given;
  if (given === undefined || given === null) return null;
  if (!Array.isArray(given)) return undefined;
  let text = '';
  for (const value of given) {
    const part: Untrusted<TextPart> | null = isRecord(value) ? value : null;
    if (part === null || typeof part.text !== 'string' || !textParts.has(part.type)) return undefined;
    text += part.text;
  }
  return text;
}

/** Says nothing, as null does, and where a client hands it back OpenAI refuses it. */
const isEmptyList = (given: unknown): boolean => Array.isArray(given) && given.length === 0;

/** The same list when every call has its form, null as it is; undefined for anything that is no list of calls. */
function properToolCalls(given: unknown, of: CallsOf): unknown {
  if (given === undefined || given === null) return given;
  if (!Array.isArray(given)) return undefined;
  let same = true;
  const calls: Untrusted<WireToolCall>[] = [];
  for (const [position, call] of given.entries()) {
    const proper = properToolCall(call, position, of);
    if (proper === null) return undefined;
    same &&= proper === call;
    calls.push(proper);
  }
  return same ? given : calls;
}

/** The same object when it has the form; null when its content or its calls cannot be read. */
function properMessage(given: Untrusted<WireMessage>, of: CallsOf): Untrusted<WireMessage> | null {
  if (isEmptyList(given.tool_calls)) {
    const { tool_calls: _none, ...rest } = given;
    return properMessage(rest, of);
  }
  const calls = properToolCalls(given.tool_calls, of);
  const callsChanged = calls !== given.tool_calls;
  const content = properContent(given.content);
  if (content === undefined || (calls === undefined && callsChanged)) return null;
  const own = withoutForeignBlock(given);
  if (own === given && given.role === 'assistant' && content === given.content && !callsChanged) return given;
  return { ...own, role: 'assistant', content, ...(callsChanged && { tool_calls: calls }) };
}

/** The index of a choice, its place where it states none; null for a number no answer has. */
export function choiceIndex(given: unknown, position: number): number | null {
  if (isKeptNumber(given)) return null;
  const index = typeof given === 'number' ? given : position;
  return Number.isInteger(index) && index >= 0 && index < maxChoices ? index : null;
}

/** Reasons that say that the answer is not whole: OpenRouter's, that of vLLM and SGLang, DeepSeek's. */
const failedReasons: ReadonlySet<unknown> = new Set(['error', 'abort', 'insufficient_system_resource']);

/** The choice that its vendor says has failed: some say so there, beside half an answer. Null: none. */
export function failedChoice(choices: unknown): Untrusted<WireChoice> | null {
  if (!Array.isArray(choices)) return null;
  for (const value of choices) {
    const choice: Untrusted<WireChoice> = isRecord(value) ? value : {};
    if (failedReasons.has(choice.finish_reason) || isErrorValue(choice)) return choice;
  }
  return null;
}

/** What the vendor says of it. */
export const errorOfChoice = ({ error }: Untrusted<WireChoice>): unknown =>
  error ?? 'the provider ended the answer with an error';

/**
 * One choice in the form SPEC 2.3 promises: an index, an assistant message, a finish reason, and tool calls
 * whose arguments are JSON text. The same object when it has that form; null when there is no message, its index,
 * content, calls or finish reason cannot be read, or it ends for calls that it does not hold.
 */
export function properChoice(value: unknown, position: number, seeded: Seeded): Untrusted<WireChoice> | null {
  if (!isRecord(value)) return null;
  const given: Untrusted<WireChoice> = value;
  if (!isRecord(given.message)) return null;
  const index = choiceIndex(given.index, position);
  if (index === null) return null;
  const { tool_calls: calls }: Untrusted<WireMessage> = given.message;
  const hasCalls = Array.isArray(calls) && calls.length > 0;
  if (given.finish_reason === 'tool_calls' && !hasCalls) return null;
  const reason = finishReason(given.finish_reason, hasCalls);
  if (reason === null) return null;
  const of: CallsOf = { choiceIndex: index, areWhole: callsAreWhole(reason), seeded };
  const message = properMessage(given.message, of);
  if (message === null) return null;
  const own = withoutForeignBlock(given);
  const same = index === given.index && message === given.message && reason === given.finish_reason;
  return same && own === given ? given : { ...own, index, message, finish_reason: reason };
}
