/** What a healthy vendor says, in the two shapes that are spoken on the wire. */

const words = 'a gateway earns trust only when the vendor behind it misbehaves'.split(' ');

/** The pieces of the answer, as they are streamed. */
const pieces: readonly string[] = words.map((word, index) => (index === 0 ? word : ` ${word}`));

/** The answer, whole. */
export const wholeText = pieces.join('');

const id = 'chatcmpl-crash-test';
const created = 1_790_000_000;
const usage = { prompt_tokens: 11, completion_tokens: pieces.length, total_tokens: 11 + pieces.length };

/** One server-sent event. */
function sse(payload: unknown): string {
  return `data: ${typeof payload === 'string' ? payload : JSON.stringify(payload)}\n\n`;
}

/** A whole `chat.completion`. */
function jsonAnswer(text = wholeText): string {
  const message = { role: 'assistant', content: text };
  const choices = [{ index: 0, message, finish_reason: 'stop' }];
  return JSON.stringify({ id, object: 'chat.completion', created, model: 'crash-test', choices, usage });
}

function chunk(delta: unknown, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return sse({ id, object: 'chat.completion.chunk', created, model: 'crash-test', choices });
}

/** The events of a whole stream: role, one per piece, finish, `[DONE]`. */
function streamAnswer(): string[] {
  return [
    chunk({ role: 'assistant', content: '' }),
    ...pieces.map((piece) => chunk({ content: piece })),
    chunk({}, 'stop'),
    sse('[DONE]'),
  ];
}

/** An Anthropic message, for a tier whose next candidate speaks that. */
function anthropicAnswer(text = wholeText): string {
  const content = [{ type: 'text', text }];
  const tokens = { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens };
  const facts = { id: 'msg_crash_test', type: 'message', role: 'assistant', model: 'crash-test' };
  return JSON.stringify({ ...facts, content, stop_reason: 'end_turn', stop_sequence: null, usage: tokens });
}

/** The same as a stream. */
function anthropicStream(): string[] {
  const event = (type: string, payload: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...payload })}\n\n`;
  const started = { ...(JSON.parse(anthropicAnswer()) as object), content: [], stop_reason: null };
  const text = (piece: string) => ({ index: 0, delta: { type: 'text_delta', text: piece } });
  return [
    event('message_start', { message: started }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ...pieces.map((piece) => event('content_block_delta', text(piece))),
    event('content_block_stop', { index: 0 }),
    event('message_delta', {
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: pieces.length },
    }),
    event('message_stop', {}),
  ];
}

/** One healthy answer in the shape of a vendor, and the parts of which broken ones are made. */
export interface Shape {
  json(text?: string): string;
  /** All events of a stream. */
  readonly events: readonly string[];
  /** The events up to the token of this number; 0: what comes before the first. */
  opening(tokens: number): readonly string[];
  readonly errorEvent: string;
  /** A whole stream that lacks what may be lacking. */
  readonly withoutDone: readonly string[];
}

const error = { message: 'the crash test broke', type: 'server_error', param: null, code: null };

const openAi: Shape = {
  json: jsonAnswer,
  events: streamAnswer(),
  opening: (tokens) => streamAnswer().slice(0, 1 + tokens),
  errorEvent: sse({ error }),
  withoutDone: streamAnswer().slice(0, -1),
};

const anthropic: Shape = {
  json: anthropicAnswer,
  events: anthropicStream(),
  opening: (tokens) => anthropicStream().slice(0, 2 + tokens),
  errorEvent: `event: error\n${sse({ type: 'error', error: { ...error, type: 'overloaded_error' } })}`,
  withoutDone: anthropicStream(),
};

/** The shape that is spoken at a path. */
export function shapeAt(path: string): Shape {
  return path.endsWith('/messages') ? anthropic : openAi;
}
