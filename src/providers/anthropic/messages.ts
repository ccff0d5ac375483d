import { ExactReader } from '../../core/json/exact-json.ts';
import type { ChatMessage } from '../../core/request/chat-request.ts';
import { mayBeObject } from '../../core/request/tool-arguments.ts';
import type { JsonRecord, Untrusted } from '../json-value.ts';
import { isRecord, parseJson, textOf } from '../json-value.ts';
import { strayFields } from '../stray-fields.ts';
import { contentBlocks } from './content.ts';
import { ToolUseIds } from './tool-use-id.ts';
import type { ContentBlock, ToolResultBlock, ToolUseBlock, Turn } from './wire.ts';

/** What is translated of a client's message (OpenAI API reference: Chat Completions, read 2026-11-20). */
interface ClientMessage {
  role: string;
  content: string;
  refusal: string;
  tool_calls: ClientCall[];
  tool_call_id: string;
}

interface ClientCall {
  id: string;
  function: ClientFunctionCall;
}

interface ClientFunctionCall {
  name: string;
  arguments: string;
}

/** A turn that is being put together. */
interface OpenTurn extends Turn {
  /** Come before any other content, in the order given: put in among it, each would move all that is behind it. */
  readonly results: ContentBlock[];
}

export interface Conversation {
  readonly system: readonly ContentBlock[];
  readonly messages: readonly Turn[];
  /** Names of message fields that have no counterpart, or in whose place something was made up. */
  readonly dropped: readonly string[];
}

const translatedFields = new Set(['role', 'content', 'refusal', 'tool_calls', 'tool_call_id']);
/** Dropped without a word, since it is nobody's loss; OpenAI, which gave the annotations, takes them back. */
const unmissedFields: ReadonlySet<string> = new Set([...strayFields, 'annotations']);

function toolInput(given: unknown, reader: ExactReader, dropped: Set<string>): JsonRecord {
  if (isRecord(given)) return given;
  const text = textOf(given);
  if (text.trim() === '') return {};
  const value = mayBeObject(text) ? parseJson(text, reader) : undefined;
  // Input must be an object; a model's broken or bare arguments are kept where the model can see them.
  if (isRecord(value)) return value;
  dropped.add('messages[].tool_calls[].function.arguments');
  return { arguments: text };
}

function toolUseBlocks(
  calls: unknown,
  ids: ToolUseIds,
  reader: ExactReader,
  dropped: Set<string>,
): ToolUseBlock[] {
  if (!Array.isArray(calls)) return [];
  return calls.filter(isRecord).map((call: Untrusted<ClientCall>) => {
    const called: Untrusted<ClientFunctionCall> = isRecord(call.function) ? call.function : {};
    return {
      type: 'tool_use',
      id: ids.of('call', call.id),
      name: textOf(called.name),
      input: toolInput(called.arguments, reader, dropped),
    };
  });
}

function toolResultBlock(message: ChatMessage, ids: ToolUseIds, dropped: Set<string>): ToolResultBlock {
  const { tool_call_id: callId }: Untrusted<ClientMessage> = message;
  const content = contentBlocks(message.content, dropped);
  const plain = typeof message.content === 'string' ? message.content : content;
  const block: ToolResultBlock = { type: 'tool_result', tool_use_id: ids.of('result', callId) };
  return content.length === 0 ? block : { ...block, content: plain };
}

/** A client's own tool_result blocks at the begin of a turn are results like ours. */
function addToTurn(turn: OpenTurn, blocks: readonly ContentBlock[]): void {
  for (const block of blocks) {
    const isResult = turn.content.length === 0 && block.type === 'tool_result';
    (isResult ? turn.results : turn.content).push(block);
  }
}

function closedTurn({ role, results, content }: OpenTurn): Turn {
  return { role, content: results.length === 0 ? content : results.concat(content) };
}

/** Not `push(...blocks)`: a call takes some 100,000 arguments, and a client may send more parts. */
function append(content: ContentBlock[], blocks: readonly ContentBlock[]): void {
  for (const block of blocks) content.push(block);
}

/** The turn to add to: neighbours of one role are one message. */
function turnOf(messages: OpenTurn[], role: Turn['role']): OpenTurn {
  const last = messages.at(-1);
  if (last?.role === role) return last;
  const turn: OpenTurn = { role, results: [], content: [] };
  messages.push(turn);
  return turn;
}

/** False where nothing is said: then there is no turn of it. */
function addBlocks(messages: OpenTurn[], role: Turn['role'], blocks: readonly ContentBlock[]): boolean {
  if (blocks.length === 0) return false;
  addToTurn(turnOf(messages, role), blocks);
  return true;
}

/** What the assistant said, refused and called. */
function assistantBlocks(
  message: ChatMessage,
  ids: ToolUseIds,
  reader: ExactReader,
  dropped: Set<string>,
): ContentBlock[] {
  const { refusal, tool_calls: calls }: Untrusted<ClientMessage> = message;
  return [
    ...contentBlocks(message.content, dropped),
    ...contentBlocks(textOf(refusal), dropped),
    ...toolUseBlocks(calls, ids, reader, dropped),
  ];
}

/** A conversation that ends with the assistant is continued from there; white space at its end is refused. */
function trimPrefill(messages: Turn[]): void {
  const last = messages.at(-1);
  const block = last?.role === 'assistant' ? last.content.at(-1) : undefined;
  if (last === undefined || block?.type !== 'text') return;
  last.content[last.content.length - 1] = { ...block, text: textOf(block.text).trimEnd() };
}

/**
 * OpenAI messages as Anthropic's system blocks and alternating turns (Claude docs: Messages API). Fields that
 * cannot be carried over are refused there, so they are left out and named.
 */
export function translateMessages(given: readonly ChatMessage[]): Conversation {
  const system: ContentBlock[] = [];
  const open: OpenTurn[] = [];
  const reader = new ExactReader();
  const dropped = new Set<string>();
  const ids = new ToolUseIds(dropped);
  /** How many of `system` came before the last turn. */
  let followed = 0;
  /** Whether somebody spoke behind the assistant's last turn, be it to say nothing. */
  let isAsked = true;
  for (const message of given) {
    for (const name of Object.keys(message)) {
      if (translatedFields.has(name) || unmissedFields.has(name) || message[name] === null) continue;
      dropped.add(`messages[].${name}`);
    }
    if (message.role === 'tool') {
      turnOf(open, 'user').results.push(toolResultBlock(message, ids, dropped));
      followed = system.length;
      continue;
    }
    if (message.role === 'assistant') {
      const blocks = assistantBlocks(message, ids, reader, dropped);
      if (!addBlocks(open, 'assistant', blocks)) continue;
      followed = system.length;
      isAsked = false;
      continue;
    }
    isAsked = true;
    const blocks = contentBlocks(message.content, dropped);
    if (message.role !== 'user') append(system, blocks);
    else if (addBlocks(open, 'user', blocks)) followed = system.length;
  }
  // Instructions alone, or behind what the assistant said, are what it is to answer: at their old place, its own words
  // would come last, and be continued.
  if (open.at(-1)?.role !== 'user') addBlocks(open, 'user', system.splice(followed));
  // A message of nothing is the vendor's to refuse: without its turn, the assistant's words before it would go on.
  if (isAsked) turnOf(open, 'user');
  const messages = open.map(closedTurn);
  trimPrefill(messages);
  return { system, messages, dropped: [...dropped] };
}
