/** Usage as an OpenAI-shaped vendor reports it; null: none at all. */
export type OpenAiUsage = Readonly<Record<string, unknown>> | null;

export interface OpenAiToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** What one answer says; the defaults make a short, complete one. */
export interface AnswerContent {
  /** Text pieces: one chunk each when streamed, joined otherwise. */
  readonly text?: readonly string[];
  readonly toolCalls?: readonly OpenAiToolCall[];
  readonly finishReason?: string;
  /** Overrides the model name of the request. */
  readonly model?: string;
  readonly id?: string;
  /** In the vendor's own form. Undefined: the default counts. Null: not reported. */
  readonly usage?: OpenAiUsage;
  readonly choices?: number;
}

/** The counts of an answer that names none: 11 in, 7 out. */
export const defaultOpenAiUsage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 } as const;

export const defaultText = ['Namaste', ', ', 'world', '.'] as const;

const created = 1_790_000_000;

function wireToolCalls(calls: readonly OpenAiToolCall[]) {
  return calls.map((call) => ({
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  }));
}

/** One SSE event with a JSON payload. */
export function sse(payload: unknown): string {
  return `data: ${typeof payload === 'string' ? payload : JSON.stringify(payload)}\n\n`;
}

/** A whole `chat.completion` as OpenAI sends it. */
export function openAiAnswer(model: string, content: AnswerContent = {}): Record<string, unknown> {
  const calls = content.toolCalls ?? [];
  const text = (content.text ?? (calls.length > 0 ? [] : defaultText)).join('');
  const choice = (index: number) => ({
    index,
    message: {
      role: 'assistant',
      content: calls.length > 0 && text === '' ? null : text,
      refusal: null,
      ...(calls.length > 0 ? { tool_calls: wireToolCalls(calls) } : {}),
    },
    logprobs: null,
    finish_reason: content.finishReason ?? (calls.length > 0 ? 'tool_calls' : 'stop'),
  });
  const usage = content.usage === undefined ? defaultOpenAiUsage : content.usage;
  return {
    id: content.id ?? 'chatcmpl-fake-1',
    object: 'chat.completion',
    created,
    model: content.model ?? model,
    choices: Array.from({ length: content.choices ?? 1 }, (_, index) => choice(index)),
    ...(usage === null ? {} : { usage }),
    system_fingerprint: 'fp_fake',
  };
}

/** One `chat.completion.chunk`. */
export function openAiChunk(
  model: string,
  delta: Readonly<Record<string, unknown>>,
  finishReason: string | null = null,
  id = 'chatcmpl-fake-1',
): Record<string, unknown> {
  return {
    id,
    object: 'chat.completion.chunk',
    created,
    model,
    choices: [{ index: 0, delta, finish_reason: finishReason }],
  };
}

/** Argument text in pieces of four characters, as vendors stream it. */
function fragments(text: string): string[] {
  return text.match(/[\s\S]{1,4}/g) ?? [''];
}

/** The events of a whole stream, `[DONE]` last: role, content, tool calls, finish, usage if `withUsage`. */
export function openAiStream(model: string, content: AnswerContent = {}, withUsage = true): string[] {
  const name = content.model ?? model;
  const id = content.id ?? 'chatcmpl-fake-1';
  const calls = content.toolCalls ?? [];
  const chunk = (delta: Record<string, unknown>, finish: string | null = null) =>
    sse(openAiChunk(name, delta, finish, id));
  const events = [chunk({ role: 'assistant', content: '', refusal: null })];
  for (const piece of content.text ?? (calls.length > 0 ? [] : defaultText))
    events.push(chunk({ content: piece }));
  calls.forEach((call, index) => {
    events.push(
      chunk({
        tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }],
      }),
    );
    for (const piece of fragments(call.arguments))
      events.push(chunk({ tool_calls: [{ index, function: { arguments: piece } }] }));
  });
  events.push(chunk({}, content.finishReason ?? (calls.length > 0 ? 'tool_calls' : 'stop')));
  const usage = content.usage === undefined ? defaultOpenAiUsage : content.usage;
  if (withUsage && usage !== null)
    events.push(sse({ ...openAiChunk(name, {}, null, id), choices: [], usage }));
  events.push(sse('[DONE]'));
  return events;
}

/** The error body of OpenAI. */
export function openAiError(status: number, message = `fake vendor says ${status}`): Record<string, unknown> {
  const kinds: Record<number, [string, string]> = {
    400: ['invalid_request_error', 'invalid_value'],
    401: ['invalid_request_error', 'invalid_api_key'],
    404: ['invalid_request_error', 'model_not_found'],
    429: ['requests', 'rate_limit_exceeded'],
  };
  const [type, code] = kinds[status] ?? ['server_error', 'server_error'];
  return { error: { message, type, param: null, code } };
}
