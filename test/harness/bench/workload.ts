/** What is sent and answered: the same bytes for every target. */

/** Of one stream, the usage chunk included, `[DONE]` not. */
export const EVENTS_PER_STREAM = 100;

/** Open at the same time while memory is looked at. */
export const HELD_STREAMS = 1_000;

/** About 1 KB of prompt, and about 1 KB of answer. */
const PROMPT_CHARACTERS = 900;
const ANSWER_CHARACTERS = 680;

const id = 'chatcmpl-bench00000000000000000000000';
const created = 1_767_225_600;
const model = 'gpt-bench';
const usage = { prompt_tokens: 210, completion_tokens: 97, total_tokens: 307 };
const messages = [{ role: 'user', content: filler(PROMPT_CHARACTERS) }];

export const jsonRequest = Buffer.from(JSON.stringify({ model: 'gw/balanced', messages }));

export const streamRequest = Buffer.from(
  JSON.stringify({ model: 'gw/balanced', messages, stream: true, stream_options: { include_usage: true } }),
);

export const jsonAnswer = Buffer.from(
  JSON.stringify({
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: filler(ANSWER_CHARACTERS), refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage,
    system_fingerprint: 'fp_bench',
  }),
);

interface Chunk {
  /** None in the chunk with the usage. */
  readonly delta?: object;
  readonly finish?: string;
  readonly usage: typeof usage | null;
}

/** One buffer per event, about 220 bytes each; the last one carries `[DONE]` too, as it would on the wire. */
export const streamEvents: readonly Buffer[] = [...chunks()].map(
  ({ delta, finish = null, ...rest }, index, all) => {
    const choices = delta === undefined ? [] : [{ index: 0, delta, logprobs: null, finish_reason: finish }];
    const chunk = { id, object: 'chat.completion.chunk', created, model, choices, ...rest };
    const end = index === all.length - 1 ? 'data: [DONE]\n\n' : '';
    return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n${end}`);
  },
);

const typedEvent = ({
  type,
  ...rest
}: {
  readonly type: string;
  readonly [field: string]: unknown;
}): Buffer => Buffer.from(`event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`);

/** As many events in Anthropic's words. */
export const anthropicEvents: readonly Buffer[] = [
  {
    type: 'message_start',
    message: {
      id: 'msg_bench000000000000000000',
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 210, output_tokens: 1 },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  ...Array.from({ length: EVENTS_PER_STREAM - 3 }, () => ({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'text_delta', text: ' token' },
  })),
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 97 },
  },
  { type: 'message_stop' },
].map(typedEvent);

function* chunks(): Generator<Chunk> {
  yield { delta: { role: 'assistant', content: '' }, usage: null };
  for (let n = 3; n < EVENTS_PER_STREAM; n += 1) yield { delta: { content: ' token' }, usage: null };
  yield { delta: {}, finish: 'stop', usage: null };
  yield { usage };
}

function filler(length: number): string {
  return 'The quick brown fox jumps over the lazy dog. '.repeat(Math.ceil(length / 45)).slice(0, length);
}
