import type { AnswerContent } from './openai-wire.ts';
import { defaultText } from './openai-wire.ts';

/** The counts of an answer that names none: 11 in, 7 out. */
export const defaultAnthropicUsage = { input_tokens: 11, output_tokens: 7 } as const;

function stopReason(content: AnswerContent): string {
  const reasons: Record<string, string> = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use' };
  const finish = content.finishReason ?? ((content.toolCalls ?? []).length > 0 ? 'tool_calls' : 'stop');
  return reasons[finish] ?? finish;
}

function usageOf(content: AnswerContent): Record<string, unknown> {
  return { ...(content.usage === undefined ? defaultAnthropicUsage : (content.usage ?? {})) };
}

/** A whole Messages answer. */
export function anthropicAnswer(model: string, content: AnswerContent = {}): Record<string, unknown> {
  const calls = content.toolCalls ?? [];
  const text = (content.text ?? (calls.length > 0 ? [] : defaultText)).join('');
  return {
    id: content.id ?? 'msg_fake_1',
    type: 'message',
    role: 'assistant',
    model: content.model ?? model,
    content: [
      ...(text === '' ? [] : [{ type: 'text', text }]),
      ...calls.map((call) => ({
        type: 'tool_use',
        id: call.id,
        name: call.name,
        input: JSON.parse(call.arguments) as unknown,
      })),
    ],
    stop_reason: stopReason(content),
    stop_sequence: null,
    usage: usageOf(content),
  };
}

/** One named SSE event. */
export function namedSse(event: string, payload: Readonly<Record<string, unknown>>): string {
  return `event: ${event}\ndata: ${JSON.stringify({ type: event, ...payload })}\n\n`;
}

function blockEvents(
  index: number,
  block: Record<string, unknown>,
  deltas: Record<string, unknown>[],
): string[] {
  return [
    namedSse('content_block_start', { index, content_block: block }),
    ...deltas.map((delta) => namedSse('content_block_delta', { index, delta })),
    namedSse('content_block_stop', { index }),
  ];
}

/** The events of a whole Messages stream, a `ping` included. */
export function anthropicStream(model: string, content: AnswerContent = {}): string[] {
  const calls = content.toolCalls ?? [];
  const text = content.text ?? (calls.length > 0 ? [] : defaultText);
  const usage = usageOf(content);
  const { output_tokens: outputTokens, ...inputUsage } = usage;
  const events = [
    namedSse('message_start', {
      message: {
        id: content.id ?? 'msg_fake_1',
        type: 'message',
        role: 'assistant',
        model: content.model ?? model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { ...inputUsage, ...(outputTokens === undefined ? {} : { output_tokens: 1 }) },
      },
    }),
    namedSse('ping', {}),
  ];
  let index = 0;
  if (text.length > 0) {
    const deltas = text.map((piece) => ({ type: 'text_delta', text: piece }));
    events.push(...blockEvents(index, { type: 'text', text: '' }, deltas));
    index += 1;
  }
  for (const call of calls) {
    const pieces = ['', ...(call.arguments.match(/[\s\S]{1,4}/g) ?? [])];
    const deltas = pieces.map((piece) => ({ type: 'input_json_delta', partial_json: piece }));
    events.push(...blockEvents(index, { type: 'tool_use', id: call.id, name: call.name, input: {} }, deltas));
    index += 1;
  }
  events.push(
    namedSse('message_delta', {
      delta: { stop_reason: stopReason(content), stop_sequence: null },
      usage: outputTokens === undefined ? {} : { output_tokens: outputTokens },
    }),
    namedSse('message_stop', {}),
  );
  return events;
}

/** The error body of Anthropic. */
export function anthropicError(
  status: number,
  message = `fake vendor says ${status}`,
): Record<string, unknown> {
  const types: Record<number, string> = {
    400: 'invalid_request_error',
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    429: 'rate_limit_error',
    529: 'overloaded_error',
  };
  return { type: 'error', error: { type: types[status] ?? 'api_error', message }, request_id: 'req_fake' };
}
