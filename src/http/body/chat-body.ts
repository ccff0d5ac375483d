import { InvalidRequestError } from '../../core/errors.ts';
import type { JsonAllowance } from '../../core/json/json-allowance.ts';
import { isKeptNumber } from '../../core/json/kept-number.ts';
import type { ChatRequest } from '../../core/request/chat-request.ts';
import { chatRequestSchema, chatRequestWithDeveloperSchema } from '../../core/request/chat-request.ts';
import { isPlainRequest, plainDepth } from '../../core/request/plain-request.ts';
import { costlyArguments } from '../../core/request/tool-arguments.ts';
import type { RoutingTables } from '../../core/tables/tables.ts';
import { notAnObject, parseOrThrow, shownParam } from '../schemas/parse.ts';
import { costlyJson } from './costly-json.ts';

const knownFields: ReadonlySet<string> = new Set(Object.keys(chatRequestSchema.shape));
const optionalFields: ReadonlySet<string> = new Set(
  [...knownFields].filter((name) => name !== 'model' && name !== 'messages'),
);

/** True when no array or object of `value` lies deeper than `limit` levels. */
function isWithinDepth(value: unknown, limit: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (limit === 0) return isKeptNumber(value);
  if (Array.isArray(value)) {
    for (const item of value) if (!isWithinDepth(item, limit - 1)) return false;
    return true;
  }
  for (const key in value)
    if (!isWithinDepth((value as Record<string, unknown>)[key], limit - 1)) return false;
  return true;
}

function checkCount(value: unknown, limit: number, param: string): void {
  if (Array.isArray(value) && value.length > limit) {
    throw new InvalidRequestError(`${param} may hold at most ${limit} entries.`, param, 'too_many_entries');
  }
}

/** Content parts of all messages, and their fields but for role and content. */
function checkParts(messages: unknown, limit: number): void {
  if (!Array.isArray(messages)) return;
  let count = 0;
  for (const [index, message] of messages.entries()) {
    if (typeof message !== 'object' || message === null) continue;
    const { content } = message as { readonly content?: unknown };
    if (Array.isArray(content)) count += content.length;
    for (const name in message) if (name !== 'role' && name !== 'content') count += 1;
    if (count > limit) {
      throw new InvalidRequestError(
        `messages may hold at most ${limit} content parts and further fields in all.`,
        `messages[${index}]`,
        'too_many_entries',
      );
    }
  }
}

/**
 * A parsed JSON body → ChatRequest (SPEC 4.5). Counts and depth are checked before anything is validated, and then
 * validation ends at the first mistake, so that a hostile body costs no more than its own parsing. A `null` for an
 * optional known field is left out; one for a field that the operator lets through passes as it is, like any value of
 * it. Throws InvalidRequestError naming the field. `allowance`: what the body has left for the JSON in its texts.
 */
export function parseChatBody(body: unknown, tables: RoutingTables, allowance: JsonAllowance): ChatRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw notAnObject();
  }
  const { limits, chat } = tables.document;
  if (limits.body_depth >= plainDepth && isPlainRequest(body) && body.messages.length <= limits.messages)
    return body;
  const known: Record<string, unknown> = {};
  const passedThrough: Record<string, unknown> = {};
  // Not Object.entries: a body of 60,000 unknown fields would be listed whole before the first is refused.
  for (const name in body) {
    const value = (body as Record<string, unknown>)[name];
    // As if it were left out, which is what clients in typed languages mean by it; our own schema knows no null.
    if (value === null && optionalFields.has(name)) continue;
    if (knownFields.has(name)) known[name] = value;
    else if (chat.passthrough_fields.includes(name)) passedThrough[name] = value;
    else
      throw new InvalidRequestError(`Unknown field: ${shownParam(name)}.`, shownParam(name), 'unknown_field');
  }
  checkCount(known['messages'], limits.messages, 'messages');
  checkParts(known['messages'], limits.message_parts);
  checkCount(known['tools'], limits.messages, 'tools');
  checkCount(known['stop'], limits.stop_sequences, 'stop');
  if (!isWithinDepth(body, limits.body_depth)) {
    throw new InvalidRequestError(
      `The body is nested deeper than ${limits.body_depth} levels.`,
      null,
      'too_deep',
    );
  }
  const schema = chat.developer_role ? chatRequestWithDeveloperSchema : chatRequestSchema;
  const request: ChatRequest = parseOrThrow(schema, known);
  const costly = costlyArguments(request.messages, allowance);
  if (costly !== null) throw costlyJson(costly.limit, shownParam(costly.path));
  if (request.max_tokens !== undefined && request.max_completion_tokens !== undefined) {
    throw new InvalidRequestError(
      'max_tokens and max_completion_tokens mean the same; send one of them.',
      'max_completion_tokens',
    );
  }
  return Object.assign(request, passedThrough);
}
