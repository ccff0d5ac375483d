/** How much text a stream was, for estimates of answers that were cut: vendors send a token in an event, or a dozen. */
import { describe, expect, test } from 'vitest';
import { providers } from '../../src/providers/registry.ts';
import { contextFor } from './fixtures.ts';
import { cutAt } from './read-stream.ts';

const words = 'lorem ipsum dolor sit amet ';
/** Of one, two, three and four bytes, and some that JSON escapes. */
const scripts = 'añ नमस्ते 你好 🙂 "\n\u0001\\';
const times = 50;

const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: object): string =>
  event({ id: 'c', choices: [{ index: 0, delta, finish_reason: null }] });
const blockDelta = (delta: object): string => event({ type: 'content_block_delta', index: 0, delta });
const block = (content_block: object): string =>
  event({ type: 'content_block_start', index: 0, content_block });

const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } };
const toolUse = { type: 'tool_use', id: 'a', name: 'f', input: {} };

describe.each([
  ['openai', 'content', '', chunk({ content: words })],
  [
    'openai',
    'padded content',
    '',
    event({ ...JSON.parse(chunk({ content: words }).slice(6)), obfuscation: 'xx' }),
  ],
  ['openai', 'content of many scripts', '', chunk({ content: scripts }), scripts],
  ['sarvam', 'reasoning', '', chunk({ reasoning_content: words })],
  [
    'together',
    'arguments of a call',
    chunk({ tool_calls: [call] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: words } }] }),
  ],
  [
    'anthropic',
    'content',
    block({ type: 'text', text: '' }),
    blockDelta({ type: 'text_delta', text: words }),
  ],
  [
    'anthropic',
    'content of many scripts',
    block({ type: 'text', text: '' }),
    blockDelta({ type: 'text_delta', text: scripts }),
    scripts,
  ],
  [
    'anthropic',
    'reasoning',
    block({ type: 'thinking', thinking: '' }),
    blockDelta({ type: 'thinking_delta', thinking: words }),
  ],
  [
    'anthropic',
    'arguments of a call',
    block(toolUse),
    blockDelta({ type: 'input_json_delta', partial_json: `{${words}` }),
    `{${words}`,
  ],
] as const)(
  'the characters that came of a stream (%s, %s)',
  (provider, _name, before, delta, text: string = words) => {
    const bytes = Buffer.from(before + delta.repeat(times));
    const [first, each] = [before, delta].map((part) => Buffer.byteLength(part)) as [number, number];

    test.each([
      ['in one read', []],
      ['an event a read', Array.from({ length: times }, (_, index) => first + index * each)],
      ['cut anywhere', [3, 101, 102, 700, 1_111]],
    ])('are those of its text, %s', (_cut, positions) => {
      const translator = providers[provider].streamTranslator(contextFor(provider, {}));
      for (const piece of cutAt(bytes, positions)) translator.push(piece);
      expect(translator.textBytes).toBe(times * Buffer.byteLength(text));
    });
  },
);
