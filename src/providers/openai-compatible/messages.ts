import type { ChatMessage } from '../../core/request/chat-request.ts';
import type { Untrusted } from '../json-value.ts';
import { isRecord } from '../json-value.ts';
import { strayFields } from '../stray-fields.ts';
import type { CalledFunction, WireContentPart, WireToolCall } from './wire.ts';

/** Fields the SDKs write as null into messages they hand back; vendors may refuse the null. */
const nullableFields = ['refusal', 'audio', 'function_call', 'tool_calls', 'annotations'] as const;

/** What a call calls; null where it is none. */
function calledBy(given: unknown): Untrusted<CalledFunction> | null {
  const call: Untrusted<WireToolCall> = isRecord(given) ? given : {};
  return isRecord(call.function) ? call.function : null;
}

function hasParsedArguments(call: unknown): boolean {
  const called = calledBy(call);
  return called !== null && Object.hasOwn(called, 'parsed_arguments');
}

/** Nearly every message is no more than that; to look for each field that may have to go takes 0.2 µs. */
function isRoleAndContent(message: ChatMessage): boolean {
  for (const name in message) if (name !== 'role' && name !== 'content') return false;
  return true;
}

/** A content that is nothing but text in parts, as one text; null: it is none. */
function joinedText({ content }: ChatMessage): string | null {
  if (!Array.isArray(content)) return null;
  let text = '';
  for (const given of content as readonly unknown[]) {
    const part: Untrusted<WireContentPart> = isRecord(given) ? given : {};
    if (part.type !== 'text' || typeof part.text !== 'string') return null;
    text += part.text;
  }
  return text;
}

/** What a vendor may see of messages. */
export interface MessageForm {
  /** Its models know the role `developer`. */
  readonly knowsDeveloper: boolean;
  /** Text in parts has to be one text. */
  readonly plainText: boolean;
}

function isClean(message: ChatMessage, { knowsDeveloper, plainText }: MessageForm): boolean {
  if (message.role === 'developer' && !knowsDeveloper) return false;
  if (plainText && Array.isArray(message.content)) return false;
  if (isRoleAndContent(message)) return true;
  for (const field of strayFields) if (message[field] !== undefined) return false;
  for (const field of nullableFields) if (message[field] === null) return false;
  const { tool_calls: calls } = message;
  return !Array.isArray(calls) || (calls.length > 0 && !calls.some(hasParsedArguments));
}

function withoutParsedArguments(call: unknown): unknown {
  const called = calledBy(call);
  if (!isRecord(call) || called === null) return call;
  const { parsed_arguments: _parsed, ...rest } = called;
  return { ...call, function: rest };
}

function cleaned(message: ChatMessage, { knowsDeveloper, plainText }: MessageForm): ChatMessage {
  const copy: ChatMessage = { ...message };
  if (copy.role === 'developer' && !knowsDeveloper) copy.role = 'system';
  if (plainText) copy.content = joinedText(message) ?? message.content;
  for (const field of strayFields) delete copy[field];
  for (const field of nullableFields) if (copy[field] === null) delete copy[field];
  const { tool_calls: calls, ...rest } = copy;
  if (!Array.isArray(calls)) return copy;
  // Some vendors answer with an empty list, and others refuse it.
  return calls.length === 0 ? rest : { ...copy, tool_calls: calls.map(withoutParsedArguments) };
}

/**
 * The messages as a vendor may see them. Unknown fields stay (SPEC 4.5, rule 2); replayed leftovers go, and
 * `developer` is `system` for a model that does not know it. The same array when there is nothing to do, which
 * is nearly always.
 */
export function cleanMessages(messages: readonly ChatMessage[], form: MessageForm): readonly ChatMessage[] {
  if (messages.every((message) => isClean(message, form))) return messages;
  return messages.map((message) => (isClean(message, form) ? message : cleaned(message, form)));
}
