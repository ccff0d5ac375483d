import { describe, expect, test } from 'vitest';
import { chunksFromCompletion } from '../../src/core/answer/completion-chunks.ts';
import { providers } from '../../src/providers/registry.ts';
import { cpuMsOf } from '../harness/measure/cpu-time.ts';
import { contextFor } from './fixtures.ts';
import { readStream } from './read-stream.ts';

/** What a vendor may have us parse and keep: counts are looked at before anything is built from them. */

const many = 300_000;
const endless = 'z'.repeat(1025);
const repeat = (text: string, count: number): string => Array(count).fill(text).join(',');
const distinct = (count: number): string => Array.from({ length: count }, (_, i) => `"k${i}":0`).join(',');
const message = '{"role":"assistant","content":"a"}';
const openAi = (choices: string, rest = ''): string => `{"id":"a","choices":[${choices}]${rest}}`;
const choice = (inner: string): string => `{"message":${inner},"finish_reason":"stop"}`;
const calls = (count: number): string =>
  choice(`{"content":"a","tool_calls":[${repeat('{"function":{"name":"f"}}', count)}]}`);
const anthropic = (content: string, rest = ''): string =>
  `{"type":"message","stop_reason":"end_turn","content":[${content}]${rest}}`;
const block = '{"type":"tool_use","name":"f","input":{}}';

describe('an answer', () => {
  test.each<[what: string, provider: 'openai' | 'anthropic', body: string]>([
    ['of hundreds of thousands of choices', 'openai', openAi(repeat(choice(message), many))],
    ['of empty choices', 'openai', openAi(repeat('{}', many))],
    ['of 129 choices', 'openai', openAi(repeat(choice(message), 129))],
    ['of 1,025 tool calls', 'openai', openAi(calls(1025))],
    ['of 1,026 tool calls in two choices', 'openai', openAi(`${calls(513)},${calls(513)}`)],
    ['with more values than any answer', 'openai', openAi(choice(message), `,"x":[${repeat('0', many)}]`)],
    ['with an object of 5,000 keys', 'openai', openAi(choice(message), `,${distinct(5000)}`)],
    ['with an endless key', 'openai', openAi(choice(message), `,"${'k'.repeat(20_000)}":1`)],
    ['with deep nesting', 'openai', openAi(choice(message), `,"x":${'['.repeat(1001)}${']'.repeat(1001)}`)],
    ['with an endless finish reason', 'openai', openAi(choice(message).replace('stop', endless))],
    ['with an endless stop reason', 'anthropic', anthropic(block).replace('end_turn', endless)],
    ['of hundreds of thousands of blocks', 'anthropic', anthropic(repeat('{}', many))],
    ['of 4,000 calls', 'anthropic', anthropic(repeat(block, 4000))],
    ['with more values than any message', 'anthropic', anthropic(block, `,"x":[${repeat('0', many)}]`)],
  ])('%s is unreadable (%s)', (_what, provider, body) => {
    const bytes = Buffer.from(body);
    let kind = '';
    const tookMs = cpuMsOf(() => {
      kind = providers[provider].translateAnswer(bytes, contextFor(provider, {})).kind;
    });
    expect(kind).toBe('unreadable');
    // Parsed, the larger of them took up to a second and hundreds of megabytes.
    expect(tookMs).toBeLessThan(200);
  });

  test.each<[what: string, body: string]>([
    ['128 choices', openAi(repeat(choice(message), 128))],
    ['1,024 tool calls', openAi(calls(1024))],
    [
      'log-probabilities of a thousand tokens with twenty alternatives',
      openAi(
        `{"message":${message},"finish_reason":"stop","logprobs":{"content":[${repeat(
          `{"token":"a","logprob":-1,"bytes":[97],"top_logprobs":[${repeat('{"token":"a","logprob":-1,"bytes":[97]}', 20)}]}`,
          1000,
        )}]}}`,
      ),
    ],
  ])('of %s is one', (_what, body) => {
    expect(providers.openai.translateAnswer(Buffer.from(body), contextFor('openai', {})).kind).toBe('answer');
  });
});

const event = (data: string): Buffer => Buffer.from(`data: ${data}\n\n`);
const delta = (inner: string): string => `{"id":"a","choices":[{"index":0,"delta":${inner}}]}`;
const nameless = (index: number): string =>
  delta(`{"tool_calls":[{"index":${index},"function":{"arguments":"${'x'.repeat(1000)}"}}]}`);
const named = (choiceIndex: number, index: number): string =>
  `{"id":"a","choices":[{"index":${choiceIndex},"delta":{"tool_calls":[{"index":${index},"id":"c${index}","function":{"name":"f"}}]}}]}`;
const toolStart = (index: number, input: string): string =>
  `{"type":"content_block_start","index":${index},"content_block":{"type":"tool_use","name":"f","input":{"a":"${input}"}}}`;

describe('a stream', () => {
  test.each<[what: string, provider: 'openai' | 'anthropic', events: Buffer[]]>([
    [
      'an event of 60,000 values',
      'openai',
      [event(delta('{"content":"a"}')), event(delta(`{"x":[${repeat('0', 60_000)}]}`))],
    ],
    ['an endless key', 'openai', [event(delta(`{"content":"a","${'k'.repeat(20_000)}":1}`))]],
    [
      'an event of 129 choices',
      'openai',
      [event(`{"choices":[${repeat('{"index":0,"delta":{"content":"a"}}', 129)}]}`)],
    ],
    [
      'arguments that wait for their names, spread over calls',
      'openai',
      Array.from({ length: 100 }, (_, i) => event(nameless(i))),
    ],
    [
      'calls spread over choices',
      'openai',
      Array.from({ length: 1100 }, (_, i) => event(named(i % 100, Math.floor(i / 100)))),
    ],
    [
      'a call with an endless id',
      'openai',
      [event(delta(`{"tool_calls":[{"id":"${'i'.repeat(20_000)}"}]}`))],
    ],
    [
      'an endless finish reason',
      'openai',
      [event(`{"id":"a","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"${endless}"}]}`)],
    ],
    [
      'an endless stop reason',
      'anthropic',
      [event(`{"type":"message_delta","delta":{"stop_reason":"${endless}"}}`)],
    ],
    [
      'whole inputs whose blocks never end',
      'anthropic',
      Array.from({ length: 40 }, (_, i) => event(toolStart(i, 'x'.repeat(50_000)))),
    ],
    [
      'more calls than any answer',
      'anthropic',
      Array.from({ length: 1100 }, (_, i) => event(toolStart(i, ''))),
    ],
    ['an event of 60,000 values (Anthropic)', 'anthropic', [event(`{"x":[${repeat('0', 60_000)}]}`)]],
  ])('with %s is broken', (_what, provider, events) => {
    const result = readStream(provider, contextFor(provider, {}), events);
    expect(result.failure?.code).toBe('stream_unreadable');
  });

  test('passes an id of a call on in which a thought is signed', () => {
    const id = `call_thought_${'i'.repeat(10_000)}`;
    const call = { id: 'a', choices: [{ delta: { tool_calls: [{ id, function: { name: 'f' } }] } }] };
    const result = readStream('self_hosted', contextFor('self_hosted', {}), [event(JSON.stringify(call))]);
    expect(result.output).toContain(`"id":"${id}"`);
  });

  const nexts = {
    openai: '{"choices":[{}]}',
    anthropic: '{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}',
  } as const;
  const firstOf = (provider: 'openai' | 'anthropic', name: string): string =>
    provider === 'openai'
      ? `{"id":${name},"model":${name},"choices":[{"delta":{"content":"a"}}]}`
      : `{"type":"message_start","message":{"id":${name},"model":${name}}}`;
  const names = [128, 129, 1024, 50_000].flatMap((length) =>
    ['i', '\u0001', '\ud800', '"', 'न'].map((letter) => [length, letter] as const),
  );

  test.each(names.flatMap((name) => [['openai', ...name] as const, ['anthropic', ...name] as const]))(
    'does not say a long name again with each event (%s, %i of %j)',
    (provider, length, letter) => {
      const translator = providers[provider].streamTranslator(contextFor(provider, {}));
      translator.push(event(firstOf(provider, JSON.stringify(letter.repeat(length)))));
      const said = translator.push(Buffer.concat(Array(1000).fill(event(nexts[provider]))))?.length ?? 0;
      expect(said).toBeLessThan(1000 * 450);
    },
  );
});

// Of escapes in an answer there may be no more.
test.each([
  ['i', 1_000_000],
  ['\u0001', 30_000],
  ['\ud800', 30_000],
])('an answer with an endless id, of %j, is not replayed with it', (letter, times) => {
  const endlessText = letter.repeat(times);
  const body = JSON.stringify({
    ...{ id: endlessText, object: 'chat.completion', created: 1, model: endlessText },
    ...{ system_fingerprint: endlessText, service_tier: endlessText },
    choices: [
      { index: 0, message: { role: 'assistant', content: 'a'.repeat(100_000) }, finish_reason: 'stop' },
    ],
  });
  const answer = providers.openai.translateAnswer(Buffer.from(body), contextFor('openai', {}));
  if (answer.kind !== 'answer') return expect.unreachable(answer.reason);
  for (const chunk of chunksFromCompletion(answer.completion)) expect(chunk.length).toBeLessThan(10_000);
});

const read = 64 * 1024;
/** Three reads' worth of the same few bytes. */
const filled = (piece: string): Buffer[] =>
  Array(3).fill(Buffer.from(piece.repeat(Math.ceil(read / piece.length)))) as Buffer[];
const numbered = (text: (index: number) => string): Buffer[] => {
  const bytes = Buffer.from(Array.from({ length: 12_000 }, (_, index) => text(index)).join(''));
  return Array.from({ length: Math.ceil(bytes.length / read) }, (_, i) =>
    bytes.subarray(i * read, (i + 1) * read),
  );
};
const openAiStart = event(delta('{"content":"a"}'));
const anthropicStart = event('{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}');

describe('a read of 64 KiB costs what its bytes cost, whatever came before it', () => {
  test.each<[what: string, provider: 'openai' | 'anthropic', reads: Buffer[]]>([
    ['chunks without choices, of ever new fields', 'openai', numbered((i) => `data: {"k${i}":1}\n\n`)],
    ['chunks without choices, of one field', 'openai', filled('data: {"k":1}\n\n')],
    ['usage', 'openai', filled('data: {"usage":{"prompt_tokens":1}}\n\n')],
    ['empty lines that end in CR', 'openai', filled('\r')],
    ['short lines that end in CR', 'openai', filled('a\r')],
    ['empty lines that end in LF', 'openai', filled('\n')],
    ['lines that end in LF before one CR', 'openai', filled(`${'\n'.repeat(read - 1)}\r`)],
    ['lines that end in CR before one LF', 'openai', filled(`${'\r'.repeat(read - 2)}a\n`)],
    ['lines of both ends in turn', 'openai', filled('\r\n\n\r')],
    ['comments', 'openai', filled(':\n\n')],
    ['events without data', 'openai', filled('data:\n\n')],
    ['events without data', 'anthropic', filled('data:\n\n')],
    ['one unfinished line, byte by byte', 'openai', Array(20_000).fill(Buffer.from('a')) as Buffer[]],
    ['short data lines of one event', 'openai', filled('data:1\n')],
    ['chunks of all choices', 'openai', numbered((i) => `data: {"choices":[{"index":${i % 128}}]}\n\n`)],
    [
      'arguments of nameless calls, a byte each',
      'openai',
      numbered(() => 'data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"a"}}]}}]}\n\n'),
    ],
    [
      'fragments of many calls',
      'openai',
      numbered(
        (i) =>
          `data: {"choices":[{"delta":{"tool_calls":[{"index":${i % 1000},"id":"c${i % 1000}","function":{"name":"f"}}]}}]}\n\n`,
      ),
    ],
    [
      'pieces that no template fits',
      'openai',
      numbered((i) => `data: {"id":"${i}","choices":[{"delta":{"content":"a"}}]}\n\n`),
    ],
    ['pings', 'anthropic', filled('data: {"type":"ping"}\n\n')],
    ['starts of messages', 'anthropic', filled('data: {"type":"message_start","message":{"id":"a"}}\n\n')],
    [
      'starts and ends of calls',
      'anthropic',
      numbered(
        (i) =>
          `data: {"type":"content_block_${i % 2 === 0 ? 'start' : 'stop'}","index":0,"content_block":{"type":"tool_use"}}\n\n`,
      ).slice(0, 2),
    ],
    [
      'usage of messages',
      'anthropic',
      filled('data: {"type":"message_delta","usage":{"output_tokens":1}}\n\n'),
    ],
  ])('%s (%s)', (_what, provider, reads) => {
    const translator = providers[provider].streamTranslator(contextFor(provider, {}));
    translator.push(provider === 'openai' ? openAiStart : anthropicStart);
    let slowestMs = 0;
    for (const bytes of reads) {
      slowestMs = Math.max(
        slowestMs,
        cpuMsOf(() => translator.push(bytes)),
      );
    }
    // A few milliseconds where nothing else runs; joined extras took seconds for the first read, and more for each next one.
    expect(slowestMs).toBeLessThan(2_000);
    expect(JSON.stringify(translator.extras).length).toBeLessThan(10_000);
  });

  test('what the last chunk without choices says is kept, and the fingerprint of the first', () => {
    const translator = providers.openai.streamTranslator(contextFor('openai', {}));
    for (const data of [
      '{"id":"a","system_fingerprint":"f","choices":[{"delta":{"content":"a"}}]}',
      '{"choices":[],"timings":{"ms":1}}',
      '{"choices":[],"timings":{"ms":2},"usage":{"prompt_tokens":1}}',
      '{"choices":[]}',
    ]) {
      translator.push(event(data));
    }
    expect(translator.extras).toEqual({ system_fingerprint: 'f', timings: { ms: 2 } });
  });
});

const callIndexes = Array.from({ length: 1024 }, (_, index) => index);
const callsStart = `{"choices":[{"delta":{"tool_calls":[${callIndexes.map((i) => `{"index":${i},"id":"c${i}","function":{"name":"f"}}`)}]}}]}`;
/** Each of them goes on with the last call. */
const callsEnd = `{"choices":[{"delta":{"tool_calls":[${callIndexes.map((i) => `{"index":${i}}`)},${repeat('{}', 22_000)}]},"finish_reason":"stop"}]}`;

// It took 0.4 to 0.7 s once, for as much as one read brings.
test('the end of a thousand calls without arguments costs what its bytes cost', () => {
  const translator = providers.openai.streamTranslator(contextFor('openai', {}));
  translator.push(event(callsStart));
  expect(cpuMsOf(() => translator.push(event(callsEnd)))).toBeLessThan(150);
  expect([translator.failure, translator.finishReasons]).toEqual([null, ['tool_calls']]);
});

// A fifth of a second for each megabyte once.
test('an error of four million words costs what its bytes cost', () => {
  const body = Buffer.from(JSON.stringify({ error: { message: 'a '.repeat(4_000_000) } }));
  const translate = () => providers.openai.translateAnswer(body, contextFor('openai', {}));
  expect(cpuMsOf(translate)).toBeLessThan(250);
  expect(translate()).toMatchObject({ kind: 'unreadable', reason: 'a '.repeat(250) });
});

test('a whole answer of millions of escapes is not parsed', () => {
  const body = (content: string) =>
    Buffer.from(`{"choices":[{"message":{"content":"${content}"},"finish_reason":"stop"}]}`);
  const kindOf = (content: string) =>
    providers.openai.translateAnswer(body(content), contextFor('openai', {})).kind;
  expect(kindOf('\\ud800'.repeat(400_000))).toBe('unreadable');
  expect(kindOf(`${'\\n'.repeat(100_000)}${'a'.repeat(2_000_000)}`)).toBe('answer');
});

test('a conversation of 100,000 tool results is translated in linear time, the results first and in order', () => {
  const rows = Array.from({ length: 50_000 }, (_, i) => [
    { role: 'user', content: `u${i}` },
    { role: 'tool', tool_call_id: `a${i}`, content: 'r' },
    { role: 'tool', tool_call_id: `b${i}`, content: 'r' },
  ]).flat();
  const request = { model: 'm', messages: rows } as never;
  let body = '';
  const tookMs = cpuMsOf(() => {
    body = providers.anthropic.translateRequest(request, contextFor('anthropic', {})).body;
  });
  expect(tookMs).toBeLessThan(3_000);
  const [turn] = (JSON.parse(body) as { messages: { content: Record<string, unknown>[] }[] }).messages;
  expect(turn?.content.slice(0, 3).map((block) => block['tool_use_id'])).toEqual(['a0', 'b0', 'a1']);
  expect(turn?.content[100_000]).toEqual({ type: 'text', text: 'u0' });
});
