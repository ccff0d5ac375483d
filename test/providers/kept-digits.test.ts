import { describe, expect, test } from 'vitest';
import { extrasOf } from '../../src/core/answer/answer-extras.ts';
import type { ChatCompletion } from '../../src/core/answer/chat-completion.ts';
import { CompletionAccumulator } from '../../src/core/answer/completion-accumulator.ts';
import { chunksFromCompletion } from '../../src/core/answer/completion-chunks.ts';
import { parseExactly } from '../../src/core/json/exact-json.ts';
import type { ProviderName } from '../../src/core/provider-name.ts';
import { providers } from '../../src/providers/registry.ts';
import { contextFor } from './fixtures.ts';
import { readStream } from './read-stream.ts';

/**
 * Every number of a vendor's answer reaches the client with the digits it was written with, also where the answer is
 * written anew. In the cases `§` stands for the number.
 */
const numbers = [
  '12345678901234567890',
  '-9007199254740993',
  '1e400',
  '-1E-400',
  '0.10000000000000001',
  '1.00000000000000000001e+2',
  '3.14159265358979323846264338327950288419716939937510',
];

const deep = `${'{"a":['.repeat(40)}§${']}'.repeat(40)}`;
const openAiRest = '"id":"c","object":"chat.completion","created":1700000000,"model":"m"';
const openAiUsage = '"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}';
const anthropicRest = '"type":"message","role":"assistant","id":"c","model":"m","stop_reason":"tool_use"';

interface Case {
  readonly name: string;
  readonly provider: ProviderName;
  readonly sent: string;
  /** Must be in what the client gets, in one of these forms: as it is, or inside a JSON string. */
  readonly kept: string;
}

const toolAnswer = (args: string): string =>
  `{${openAiRest},"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":${args}}}]},"finish_reason":"tool_calls"}],${openAiUsage}}`;
const textAnswer = (more: string, top = ''): string =>
  `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"${more}}],${openAiUsage}${top}}`;
const toolUse = (input: string): string =>
  `{${anthropicRest},"content":[{"type":"tool_use","id":"t","name":"f","input":${input}}],"usage":{"input_tokens":1,"output_tokens":1}}`;

const answers: readonly Case[] = [
  { name: 'a field of the answer', provider: 'openai', sent: textAnswer('', ',"x":§'), kept: '"x":§' },
  {
    name: 'a field deep in the answer',
    provider: 'together',
    sent: textAnswer('', `,"x":${deep}`),
    kept: deep,
  },
  {
    name: 'log-probabilities',
    provider: 'openai',
    sent: textAnswer(',"logprobs":{"content":[{"logprob":§}]}'),
    kept: '"logprob":§',
  },
  {
    name: 'an answer that goes out as it came',
    provider: 'openai',
    sent: toolAnswer('"{\\"id\\":§}"'),
    kept: '{"id":§}',
  },
  { name: 'arguments as an object', provider: 'self_hosted', sent: toolAnswer('{"id":§}'), kept: '{"id":§}' },
  { name: 'arguments deep in an object', provider: 'sarvam', sent: toolAnswer(deep), kept: deep },
  { name: 'arguments that are a number', provider: 'self_hosted', sent: toolAnswer('§'), kept: '"§"' },
  {
    name: 'keys given twice',
    provider: 'self_hosted',
    sent: toolAnswer('{"a":{"n":1},"a":{"n":§},"b":"§"}'),
    kept: '{"a":{"n":§},"b":"§"}',
  },
  {
    name: 'keys with escapes',
    provider: 'self_hosted',
    sent: toolAnswer('{"a\\"\\u00e9":§,"__proto__":{"x":§}}'),
    kept: '{"a\\"é":§,"__proto__":{"x":§}}',
  },
  { name: 'input of a tool', provider: 'anthropic', sent: toolUse('{"id":§}'), kept: '{"id":§}' },
  { name: 'input deep', provider: 'anthropic', sent: toolUse(deep), kept: deep },
  {
    name: 'several in a list',
    provider: 'anthropic',
    sent: toolUse('{"ids":[1,§,[§,2],{"x":§}],"y":0.5}'),
    kept: '{"ids":[1,§,[§,2],{"x":§}],"y":0.5}',
  },
];

const chunk = (choice: string, more = ''): string =>
  `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[${choice}]${more}}\n\n`;
const finish = `${chunk('{"index":0,"delta":{},"finish_reason":"tool_calls"}')}data: [DONE]\n\n`;
const fragment = (args: string): string =>
  chunk(
    `{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"t","type":"function","function":{"name":"f","arguments":${args}}}]}}`,
  );
const block = (input: string): string =>
  [
    `{"type":"message_start","message":{"id":"c","model":"m","usage":{"input_tokens":1}}}`,
    `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":${input}}}`,
    '{"type":"content_block_stop","index":0}',
    '{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1}}',
    '{"type":"message_stop"}',
  ]
    .map((data) => `data: ${data}\n\n`)
    .join('');

const toolStreams: readonly Case[] = [
  {
    name: 'arguments as an object',
    provider: 'self_hosted',
    sent: fragment('{"id":§}') + finish,
    kept: '{"id":§}',
  },
  { name: 'arguments deep', provider: 'together', sent: fragment(deep) + finish, kept: deep },
  { name: 'input given whole', provider: 'anthropic', sent: block('{"id":§}'), kept: '{"id":§}' },
  { name: 'input given whole and deep', provider: 'anthropic', sent: block(deep), kept: deep },
];

const streams: readonly Case[] = [
  ...toolStreams,
  {
    name: 'a chunk that is put into form',
    provider: 'openai',
    sent: chunk('{"delta":{"content":"hi"},"x":§}', ',"y":§') + finish.replace('tool_calls', 'stop'),
    kept: '"x":§',
  },
];

const withNumber = (text: string, number: string): string => text.replaceAll('§', number);

/** The JSON texts of tool calls stand in strings, with their quotes escaped. */
function expectKept(text: string, kept: string): void {
  const inString = JSON.stringify(kept).slice(1, -1);
  expect(text.includes(kept) || text.includes(inString), `${kept} in ${text}`).toBe(true);
}

function answerOf({ provider, sent }: Case, number: string) {
  const body = Buffer.from(withNumber(sent, number));
  const answer = providers[provider].translateAnswer(body, contextFor(provider, {}));
  if (answer.kind !== 'answer') throw new Error(answer.reason);
  return answer;
}

describe.each(numbers)('%s is kept', (number) => {
  test.each(answers)('in $name of a whole answer of $provider', (given) => {
    expectKept(answerOf(given, number).json, withNumber(given.kept, number));
  });

  test.each(streams)('in $name of a stream of $provider', ({ provider, sent, kept }) => {
    const result = readStream(provider, contextFor(provider, {}), [Buffer.from(withNumber(sent, number))]);
    expect(result.phase).toBe('finished');
    expectKept(result.output, withNumber(kept, number));
  });

  test.each(answers)('in $name of $provider, replayed as a stream from the cache', (given) => {
    const stored = parseExactly(answerOf(given, number).json) as ChatCompletion;
    const chunks = Buffer.concat([...chunksFromCompletion(stored)]).toString('utf8');
    expectKept(chunks + JSON.stringify(extrasOf(stored)), withNumber(given.kept, number));
  });

  test.each(toolStreams)('in $name of a stream of $provider, stored', ({ provider, sent, kept }) => {
    const result = readStream(provider, contextFor(provider, {}), [Buffer.from(withNumber(sent, number))]);
    const accumulator = new CompletionAccumulator(1024 * 1024);
    accumulator.push(Buffer.from(result.output, 'latin1'));
    expectKept(JSON.stringify(accumulator.complete(null)), withNumber(kept, number));
  });

  test('in what a stream says beside its usage', () => {
    const last = `data: {"id":"c","choices":[],"timings":{"ms":${number}}}\n\n`;
    const translator = providers.self_hosted.streamTranslator(contextFor('self_hosted', {}));
    translator.push(Buffer.from(chunk('{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}') + last));
    expect(JSON.stringify(translator.extras)).toBe(`{"timings":{"ms":${number}}}`);
  });

  test('in the arguments of a call that a client replays to Anthropic', () => {
    const messages = [
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: `{"id":${number}}` } }],
      },
      { role: 'tool', tool_call_id: 't', content: 'done' },
    ] as const;
    const request = { model: 'gw/balanced', messages: [...messages] } as never;
    const { body } = providers.anthropic.translateRequest(request, contextFor('anthropic', {}));
    expect(body).toContain(`"input":{"id":${number}}`);
  });
});
