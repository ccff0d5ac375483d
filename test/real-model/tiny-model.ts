import type { Metadata, Tensor } from './gguf.ts';
import { gguf } from './gguf.ts';

/** A Llama with random weights: it says nothing sensible, but it is loaded, prompted and sampled like any other. */

const width = 128;
const heads = 4;
const feedForward = 256;
const layers = 4;

/** Tokens of context: room for a generation that takes many seconds, unless it is stopped. */
export const contextLength = 32_768;

/** What the model can say, scripts of two, three and four bytes a character included. */
const words = [
  ...'the a one two red blue green bird river stone moon light runs sings keeps turns over under'.split(' '),
  ...['schön', 'très', 'नमस्ते', 'भारत', '世界', 'こんにちは', '🙂', '👩‍🚀'],
];

/** How SentencePiece writes a space. */
const space = '▁';
/** As the template has it. Said now and then like any word; with tools llama.cpp then binds the rest to a call. */
const toolCallMark = '<tool_call>\n';
const wordTokens = [...words.map((word) => space + word), toolCallMark];
const byteTokens = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
);
const controlTokens = ['<unk>', '<s>', '</s>'];
const unspokenTokens = [...controlTokens, ...byteTokens, space];
const tokens = [...unspokenTokens, ...wordTokens];

/** llama.cpp's token types. */
const tokenType = { normal: 1, unknown: 2, control: 3, byte: 6 } as const;
const tokenTypes = [
  ...[tokenType.unknown, tokenType.control, tokenType.control],
  ...byteTokens.map(() => tokenType.byte),
  ...[space, ...wordTokens].map(() => tokenType.normal),
];

/** ChatML with tools as Hermes writes them, a format that llama.cpp can bind the model to. */
const chatTemplate = String.raw`
{%- if tools %}
  {{- '<|im_start|>system\n<tools>' }}
  {%- for tool in tools %}
    {{- '\n' }}{{- tool | tojson }}
  {%- endfor %}
  {{- '\n</tools><|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
  {{- '<|im_start|>' + message.role }}
  {%- if message.content %}
    {{- '\n' + message.content }}
  {%- endif %}
  {%- if message.tool_calls %}
    {%- for call in message.tool_calls %}
      {{- '\n<tool_call>\n{"name": "' }}
      {{- call.function.name }}
      {{- '", "arguments": ' }}
      {{- call.function.arguments | tojson }}
      {{- '}\n</tool_call>' }}
    {%- endfor %}
  {%- endif %}
  {{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<|im_start|>assistant\n' }}
{%- endif %}
`;

const u32 = (value: number): Metadata => ({ type: 'u32', value });
const string = (value: string | readonly string[]): Metadata => ({ type: 'string', value });

const metadata: Readonly<Record<string, Metadata>> = {
  'general.architecture': string('llama'),
  'general.name': string('Tiny random Llama'),
  'llama.vocab_size': u32(tokens.length),
  'llama.context_length': u32(contextLength),
  'llama.embedding_length': u32(width),
  'llama.block_count': u32(layers),
  'llama.feed_forward_length': u32(feedForward),
  'llama.attention.head_count': u32(heads),
  'llama.attention.head_count_kv': u32(heads),
  'llama.attention.layer_norm_rms_epsilon': { type: 'f32', value: 1e-5 },
  'llama.rope.dimension_count': u32(width / heads),
  'tokenizer.ggml.model': string('llama'),
  'tokenizer.ggml.tokens': string(tokens),
  'tokenizer.ggml.scores': { type: 'f32', value: tokens.map((_, index) => -index) },
  'tokenizer.ggml.token_type': { type: 'i32', value: tokenTypes },
  'tokenizer.ggml.unknown_token_id': u32(0),
  'tokenizer.ggml.bos_token_id': u32(1),
  'tokenizer.ggml.eos_token_id': u32(2),
  'tokenizer.ggml.add_space_prefix': { type: 'bool', value: false },
  'tokenizer.chat_template': string(chatTemplate),
};

/** A seeded generator (mulberry32), so that every run has the same model. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The bytes of the model file, the same every time. */
export function tinyModel(): Buffer {
  const random = seededRandom(1);
  const matrix = (name: string, inputs: number, outputs: number, spread = 1): Tensor => ({
    name,
    shape: [inputs, outputs],
    data: Float32Array.from({ length: inputs * outputs }, () => (random() * 2 - 1) * spread),
  });
  const norm = (name: string): Tensor => ({ name, shape: [width], data: new Float32Array(width).fill(1) });

  const output = matrix('output.weight', width, tokens.length);
  // With zero weights a token never has the greatest logit: only words win, and no answer ends by itself.
  output.data.fill(0, 0, width * unspokenTokens.length);

  const blocks = Array.from({ length: layers }, (_, index) => [
    norm(`blk.${index}.attn_norm.weight`),
    matrix(`blk.${index}.attn_q.weight`, width, width),
    matrix(`blk.${index}.attn_k.weight`, width, width),
    matrix(`blk.${index}.attn_v.weight`, width, width),
    matrix(`blk.${index}.attn_output.weight`, width, width),
    norm(`blk.${index}.ffn_norm.weight`),
    matrix(`blk.${index}.ffn_gate.weight`, width, feedForward),
    matrix(`blk.${index}.ffn_up.weight`, width, feedForward),
    matrix(`blk.${index}.ffn_down.weight`, feedForward, width),
  ]);
  return gguf(metadata, [
    matrix('token_embd.weight', width, tokens.length),
    ...blocks.flat(),
    norm('output_norm.weight'),
    output,
  ]);
}
