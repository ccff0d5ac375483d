import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { providers } from '../../src/providers/registry.ts';
import { beginSlab } from '../harness/measure/memory.ts';
import { contextFor } from './fixtures.ts';

/**
 * What an open stream keeps between its events, whatever a vendor puts into them. Hundreds of streams may be open, and
 * a vendor of one's own decides what each of them is sent: a megabyte kept with each ends the process.
 */

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

const streams = 24;
/** What any stream keeps: its template, its usage, what it was asked. */
const usualBytes = 24_000;
/** Beside it a stream may keep what it says that it does: that is counted. A heap is measured with some error. */
const error = 1.25;
const megabyte = 'z'.repeat(1_000_000);
const perEvent = 'n'.repeat(1000);

type Fields = Record<string, unknown>;
const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (fields: Fields, delta: Fields = { content: 'a' }, choice: Fields = {}): string =>
  event({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: null, ...choice }],
    ...fields,
  });
const call = (fields: Fields): string => chunk({}, { tool_calls: [{ index: 0, ...fields }] });
const named = { name: 'f', arguments: '{' };
const counts = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
const repeated = (count: number, make: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => make(index)).join('');

const openAi: Record<string, string> = {
  id: chunk({ id: megabyte }),
  model: chunk({ model: megabyte }),
  created: chunk({ created: megabyte }),
  object: chunk({ object: megabyte }),
  system_fingerprint: chunk({ system_fingerprint: megabyte }),
  service_tier: chunk({ service_tier: megabyte, choices: [] }),
  'an unknown field': chunk({ x: megabyte }),
  'an unknown field of a chunk without choices': chunk({ x: megabyte, choices: [] }),
  'long digits beside padding': `data: {"choices":[],"obfuscation":"${megabyte}","x":12345678901234567890123}\n\n`,
  'usage, unknown member': chunk({ usage: { ...counts, x: megabyte } }),
  'usage, details': chunk({ usage: { ...counts, prompt_tokens_details: { x: megabyte } } }),
  'usage without choices': chunk({ choices: [], usage: { ...counts, x: megabyte } }),
  'usage that is put into form': chunk({ usage: { prompt_tokens: 1, x: megabyte } }),
  'the end of padded chunks': chunk({ obfuscation: 'x', y: megabyte }),
  content: chunk({}, { content: megabyte }),
  'content in parts': chunk({}, { content: [{ type: 'text', text: megabyte }] }),
  reasoning: chunk({}, { reasoning: megabyte }),
  refusal: chunk({}, { refusal: megabyte }),
  role: chunk({}, { role: megabyte, content: 'a' }),
  'an unknown field of a delta': chunk({}, { content: 'a', x: megabyte }),
  audio: chunk({}, { audio: { data: megabyte } }),
  function_call: chunk({}, { function_call: { name: megabyte } }),
  logprobs: chunk({}, { content: 'a' }, { logprobs: { content: [megabyte] } }),
  'the index of a choice': chunk({}, { content: 'a' }, { index: megabyte }),
  finish_reason: chunk({}, {}, { finish_reason: megabyte }),
  'finish reasons of all choices': repeated(128, (index) =>
    chunk({}, { content: 'a' }, { index, finish_reason: 'r'.repeat(10_000) }),
  ),
  'tool id': call({ id: megabyte, function: named }),
  'tool name': call({ id: 'i', function: { name: megabyte } }),
  'tool type': call({ id: 'i', type: megabyte, function: named }),
  'tool index': call({ id: 'i', index: megabyte, function: named }),
  'tool arguments': call({ id: 'i', function: { name: 'f', arguments: megabyte } }),
  'tool arguments before their name': call({ function: { arguments: megabyte } }),
  'tool arguments before their name, piece by piece': repeated(20_000, () =>
    call({ function: { arguments: 'ab' } }),
  ),
  'custom tool': call({ id: 'i', custom: { name: megabyte, input: megabyte } }),
  'ids and names of many tools': repeated(1020, (index) =>
    call({ index, id: `${index}${perEvent}`, function: { name: `${index}${perEvent}`, arguments: '' } }),
  ),
  choices: repeated(128, (index) => chunk({}, { content: 'a' }, { index })),
  'calls of all choices': repeated(128, (index) =>
    chunk(
      {},
      { tool_calls: Array.from({ length: 7 }, (_, at) => ({ index: at, function: named })) },
      { index },
    ),
  ),
  'calls of one choice': repeated(1020, (index) => call({ index, function: named })),
  'the name of an event': `event: ${megabyte}\n${chunk({})}`,
};

const started = (message: Fields): string => event({ type: 'message_start', message });
const block = (fields: Fields, index: unknown = 0): string =>
  event({ type: 'content_block_start', index, content_block: fields });
const delta = (fields: Fields): string => event({ type: 'content_block_delta', index: 0, delta: fields });
const ended = (fields: Fields, usage: Fields = {}): string =>
  event({ type: 'message_delta', delta: fields, usage });

const anthropic: Record<string, string> = {
  'message id': started({ id: megabyte }),
  model: started({ model: megabyte }),
  'usage at the start': started({ usage: { input_tokens: 1, x: megabyte } }),
  'usage at the end': ended({}, { output_tokens: 1, service_tier: megabyte }),
  text: block({ type: 'text', text: megabyte }),
  thinking: block({ type: 'thinking', thinking: megabyte, signature: megabyte }),
  'an unknown block': block({ type: 'redacted_thinking', data: megabyte }),
  'text delta': delta({ type: 'text_delta', text: megabyte }),
  signature: delta({ type: 'signature_delta', signature: megabyte }),
  citation: delta({ type: 'citations_delta', citation: { cited_text: megabyte } }),
  'stop reason': ended({ stop_reason: megabyte }),
  'stop sequence': ended({ stop_reason: 'stop_sequence', stop_sequence: megabyte }),
  'tool id': block({ type: 'tool_use', id: megabyte, name: 'f' }),
  'tool name': block({ type: 'tool_use', id: 'i', name: megabyte }),
  'tool index': block({ type: 'tool_use', id: 'i', name: 'f' }, megabyte),
  'many tools that are not at their end': repeated(1020, (index) =>
    block({ type: 'tool_use', name: 'f' }, index),
  ),
  'whole inputs of tools that are not at their end': repeated(9, (index) =>
    block({ type: 'tool_use', name: 'f', input: { x: perEvent.repeat(100) } }, index),
  ),
  'an unknown event': event({ type: megabyte }),
};

/** What is not whole yet, at the end of a read of `usual` events. */
const unfinished: Record<string, (usual: string) => string> = {
  'the beginning of a long line': () => `data: ${megabyte}`,
  'a long line without the blank one': () => `data: ${megabyte}\n`,
  'a short line without the blank one behind a long read': (usual) =>
    `${usual.repeat(5000).replaceAll('\n', '\r\n')}data: x\n`,
  'lines of data': () => `data: ${'y'.repeat(10_000)}\n`.repeat(100),
  'a long name': () => `event: ${megabyte}\n`,
  'a long name in letters of two bytes': () => `event: ${'\u{3b1}'.repeat(500_000)}\n`,
  'a short line in two pieces of another event': () => 'data: x',
  'a comment': () => `: ${megabyte}\n`,
};

/** Bytes that each of `streams` translators still holds after `text`, which comes behind a usual event, and says so. */
function keptBytes(provider: 'openai' | 'anthropic', usual: string, text: string) {
  const held = Array.from({ length: streams + 1 }, () =>
    providers[provider].streamTranslator(contextFor(provider, { maxEventBytes: 4_000_000 })),
  );
  const feed = (translator: (typeof held)[number]): void => {
    // Its own server sends what nobody keeps in between.
    for (const piece of [usual, text]) {
      beginSlab();
      translator.push(Buffer.from(piece));
    }
  };
  const memory = (): number => {
    // What a first one frees may hold what a second one finds.
    for (let round = 0; round < 2; round += 1) gc();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  // The first one pays for what is built once.
  for (const translator of held.slice(0, 1)) feed(translator);
  const before = memory();
  for (const translator of held.slice(1)) feed(translator);
  const after = memory();
  expect(held).toHaveLength(streams + 1);
  const { keptBytes = 0, decoder } = held[0] ?? {};
  return { kept: (after - before) / streams, told: keptBytes + (decoder?.heldBytes ?? 0) };
}

describe.each([
  ['openai', chunk({}), openAi],
  ['anthropic', delta({ type: 'text_delta', text: 'a' }), anthropic],
] as const)('an open stream (%s) keeps no more than it says of', (provider, usual, events) => {
  test.each(Object.entries(events))('%s', (_what, text) => {
    const { kept, told } = keptBytes(provider, usual, text);
    expect(kept).toBeLessThan(usualBytes + error * told);
  });

  test.each(Object.entries(unfinished))('unfinished: %s', (_what, textOf) => {
    const { kept, told } = keptBytes(provider, usual, textOf(usual));
    expect(kept).toBeLessThan(usualBytes + error * told);
  });

  test('a plain answer, which is next to nothing', () => {
    expect(keptBytes(provider, usual, usual).told).toBeLessThanOrEqual(1_000);
  });
});

test('of a usage object that is too long its counts go on', () => {
  const translator = providers.openai.streamTranslator(contextFor('openai', {}));
  translator.push(Buffer.from(chunk({ usage: { ...counts, x: 'x'.repeat(4096) } })));
  expect(translator.wireUsage).toEqual(counts);
});
