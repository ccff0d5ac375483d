import type { AnswerMessage, ChatCompletion, Choice } from './chat-completion.ts';
import { textFields } from './completion-accumulator.ts';
import { frame } from './sse-frame.ts';

/** Longest text of one replayed delta, in UTF-16 units: some clients cap a line at 64 KiB. */
const maxDeltaLength = 8192;
/** Of a fingerprint or a tier; those seen have 13 characters. */
const maxMarkLength = 128;

function* pieces(text: string): Generator<string> {
  let start = 0;
  while (start < text.length) {
    let end = Math.min(start + maxDeltaLength, text.length);
    const last = text.charCodeAt(end - 1);
    // A surrogate pair stays together: half of one does not survive UTF-8.
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}

function* deltasOf(message: AnswerMessage): Generator<Record<string, unknown>> {
  const { role, tool_calls: toolCalls, ...rest } = message;
  const opening: Record<string, unknown> = { role };
  for (const [name, value] of Object.entries(rest)) {
    const isText = (textFields as readonly string[]).includes(name);
    // An empty text is said once, here: no piece of it would follow.
    if (!isText || value === '' || value === null) opening[name] = value;
  }
  yield opening;
  for (const field of textFields) {
    const text = rest[field];
    if (typeof text !== 'string') continue;
    for (const piece of pieces(text)) yield { [field]: piece };
  }
  // A stored answer may be older than the check that this is a list.
  const calls: AnswerMessage['tool_calls'] = Array.isArray(toolCalls) ? toolCalls : [];
  // Servers number whole calls too, some with -1 or all with 0: clients join fragments by the place among them.
  for (const [index, call] of calls.entries()) yield { tool_calls: [{ ...call, index }] };
}

function* chunkChoices(choice: Choice): Generator<Record<string, unknown>> {
  const { index, message, finish_reason: finishReason, delta: _theirs, ...extra } = choice;
  let first = true;
  for (const delta of deltasOf(message)) {
    yield { index, delta, ...(first ? extra : {}), finish_reason: null };
    first = false;
  }
  yield { index, delta: {}, finish_reason: finishReason };
}

/**
 * Replays a stored answer as a stream: SSE events in OpenAI chunk shape, ready to be written. Per choice a
 * role delta, the text, the tool calls, and a finish chunk. The gateway chunk, with usage where it was asked
 * for, and `[DONE]` are the caller's.
 */
export function* chunksFromCompletion(completion: ChatCompletion): Generator<Buffer> {
  const { id, created, model, choices } = completion;
  const head: Record<string, unknown> = { id, object: 'chat.completion.chunk', created, model };
  for (const field of ['system_fingerprint', 'service_tier']) {
    const value = completion[field];
    // Each event has it: what is longer than any is left out.
    if (typeof value === 'string' && value.length <= maxMarkLength) head[field] = value;
  }
  for (const choice of choices) {
    for (const part of chunkChoices(choice)) {
      yield Buffer.from(frame(JSON.stringify({ ...head, choices: [part] })));
    }
  }
}
