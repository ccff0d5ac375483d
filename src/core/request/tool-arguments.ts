import type { JsonAllowance, JsonLimit } from '../json/json-allowance.ts';
import type { ChatMessage } from './chat-request.ts';

/** True for arguments of a tool call that may be an object, as they must be: others are not read, whoever gets them. */
export function mayBeObject(text: string): boolean {
  return text.trimStart().startsWith('{');
}

interface Arguments {
  /** `messages[1].tool_calls[0].function.arguments` */
  readonly path: string;
  readonly text: string;
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}

/** The arguments of all tool calls that are read as JSON where a vendor wants them so. */
function readableArguments(messages: readonly ChatMessage[]): Arguments[] {
  const found: Arguments[] = [];
  for (const [index, message] of messages.entries()) {
    const calls = message['tool_calls'];
    if (!Array.isArray(calls)) continue;
    for (const [place, call] of calls.entries()) {
      const text = field(field(call, 'function'), 'arguments');
      if (typeof text !== 'string' || !mayBeObject(text)) continue;
      found.push({ path: `messages[${index}].tool_calls[${place}].function.arguments`, text });
    }
  }
  return found;
}

/**
 * The first arguments of a tool call for which the request has nothing left, and of what; null: all of them can be read
 * in one turn of the event loop. Whichever vendor it is for: what one takes, the next candidate has to take too.
 */
export function costlyArguments(
  messages: readonly ChatMessage[],
  allowance: JsonAllowance,
): { readonly path: string; readonly limit: JsonLimit } | null {
  const found = readableArguments(messages);
  if (allowance.hasRoomFor(found.reduce((length, { text }) => length + text.length, 0))) return null;
  for (const { path, text } of found) {
    const taken = allowance.take(Buffer.from(text), Number.POSITIVE_INFINITY);
    if (typeof taken === 'string') return { path, limit: taken };
  }
  return null;
}
