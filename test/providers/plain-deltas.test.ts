import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { doneFrame, frame, frameStart } from '../../src/core/answer/sse-frame.ts';
import { providers } from '../../src/providers/registry.ts';
import { contextFor } from './fixtures.ts';
import { chunksOf, cutAt, readStream } from './read-stream.ts';

type Extra = Record<string, unknown>;

function event(delta: object, extra: Extra = {}, finishReason: string | null = null): Buffer {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finishReason }];
  const head = { id: 'c1', object: 'chat.completion.chunk', created: 5, model: 'm' };
  return Buffer.from(frame(JSON.stringify({ ...head, choices, ...extra })));
}

const done = Buffer.from(doneFrame);
const context = contextFor('openai', {});
/** As right as our own. */
const otherStarts = ['data:', 'data:  '].filter((start) => start !== frameStart);

/** A stream that has seen its role and one plain delta, so that it knows what plain looks like. */
function startedStream(extra: Extra = {}) {
  const translator = providers.openai.streamTranslator(context);
  translator.push(event({ role: 'assistant', content: '' }, extra));
  translator.push(event({ content: 'Hi' }, extra));
  return translator;
}

describe('plain content deltas', () => {
  /** What `act` returns; it must not parse anything. */
  function withoutParsing<Value>(act: () => Value): Value {
    const parse = vi.spyOn(JSON, 'parse');
    const value = act();
    const calls = parse.mock.calls.length;
    parse.mockRestore();
    expect(calls).toBe(0);
    return value;
  }

  test('one to a read: the very same buffer goes out, nothing is parsed', () => {
    const translator = startedStream();
    for (const content of ['there', '', ' "quoted"\n', 'नमस्ते 🙂', '\u2028', '"tool_calls":[{"error"']) {
      const read = event({ content });
      expect(withoutParsing(() => translator.push(read))).toBe(read);
    }
  });

  test('many to a read: the very same buffer goes out', () => {
    const translator = startedStream({ usage: null });
    const read = Buffer.concat(['a', 'b', 'c'].map((content) => event({ content }, { usage: null })));
    expect(withoutParsing(() => translator.push(read))).toBe(read);
  });

  test('padding of any length does not make a delta less plain', () => {
    const translator = startedStream({ obfuscation: 'x' });
    const read = event({ content: 'a' }, { obfuscation: 'longer padding' });
    expect(withoutParsing(() => translator.push(read))).toBe(read);
  });

  test('a read cut inside an event is put together without parsing', () => {
    const translator = startedStream();
    const bytes = Buffer.concat([event({ content: 'a' }), event({ content: 'b' }), event({ content: 'c' })]);
    const output = withoutParsing(() =>
      cutAt(bytes, [100, 300]).map((piece) => translator.push(piece) ?? Buffer.alloc(0)),
    );
    expect(Buffer.concat(output).equals(bytes)).toBe(true);
  });
});

describe('whatever a stream holds', () => {
  test('before the first token nothing takes the short way', () => {
    const translator = providers.openai.streamTranslator(context);
    translator.push(event({ role: 'assistant', content: '' }));
    translator.push(event({ content: '' }));
    expect(translator.phase).toBe('prefix');
    expect(translator.tokenSeen).toBe(false);
  });

  test.each([
    ['a finish reason as long as null', event({ content: 'x' }, {}, 'ok')],
    ['a finish reason', event({ content: 'x' }, {}, 'stop')],
    [
      'usage',
      event({ content: 'x' }, { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }),
    ],
    ['an error', Buffer.from(frame('{"error":{"message":"x"}}'))],
    ['a role', event({ role: 'assistant', content: 'x' })],
    ['another field', event({ content: 'x', gateway: {} })],
    ['another id', event({ content: 'x' }, { id: 'c2' })],
    ['a broken escape', Buffer.from(event({ content: 'x' }).toString().replace('"x"', '"\\ux"'))],
    ['a control character', Buffer.from(event({ content: 'x' }).toString().replace('"x"', '"\t"'))],
    ['CRLF', Buffer.from(event({ content: 'x' }).toString().replaceAll('\n', '\r\n'))],
    ...otherStarts.map((start): [string, Buffer] => [
      `"${start}"`,
      Buffer.from(event({ content: 'x' }).toString().replace(frameStart, start)),
    ]),
    ['[DONE]', done],
  ])('an event with %s does not go out unseen', (_what, read) => {
    expect(startedStream().push(read)).not.toBe(read);
  });

  test.each([
    ['behind it', '"content":"TEXT","\\u0063ontent":"b"'],
    ['before it', '"\\u0063ontent":"b","content":"TEXT"'],
  ])('the name of the text once more, in escapes, %s: each event is parsed', (_where, inside) => {
    const translator = startedStream({ id: 'other' });
    const eventOf = (text: string): Buffer =>
      Buffer.from(
        event({ content: 'TEXT' }).toString().replace('"content":"TEXT"', inside).replace('TEXT', text),
      );
    translator.push(eventOf('a'));
    const parse = vi.spyOn(JSON, 'parse');
    for (const text of ['c', 'd']) translator.push(eventOf(text));
    expect(parse).toHaveBeenCalledTimes(2);
    parse.mockRestore();
  });

  const text = fc.string({ unit: 'binary', maxLength: 12 });
  const plainEvent = text.map((content) => event({ content }));
  const oddEvent = fc.oneof(
    text.map((content) => event({ role: 'assistant', content })),
    text.map((reasoning) => event({ reasoning_content: reasoning })),
    text.map((id) => event({ content: 'x' }, { id })),
    text.map((given) =>
      event({
        tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: given } }],
      }),
    ),
    fc.constantFrom(
      Buffer.from(': comment\n\n'),
      Buffer.from('event: ping\ndata: {}\n\n'),
      event({}, {}, 'stop'),
      Buffer.from(frame('{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}')),
      Buffer.from(event({ content: 'x' }).toString().replaceAll('\n', '\r\n')),
      Buffer.from(frame('{"error":"boom"}')),
      Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0x20, 0xff, 0xfe, 0x0a, 0x0a]),
      done,
    ),
  );
  const stream = fc
    .array(fc.oneof({ weight: 4, arbitrary: plainEvent }, { weight: 1, arbitrary: oddEvent }), {
      maxLength: 12,
    })
    .map((events) => Buffer.concat([event({ content: 'a' }), ...events]));

  test('any cut of any stream gives the same output and the same end', () => {
    fc.assert(
      fc.property(
        stream,
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 10 }),
        (bytes, cuts) => {
          const whole = readStream('openai', context, [bytes]);
          const positions = cuts.map((cut) => Math.floor(cut * bytes.length));
          expect(readStream('openai', context, cutAt(bytes, positions))).toEqual(whole);
          chunksOf(whole.output);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('an event of almost 1 MiB passes, byte for byte', () => {
    const large = event({ content: 'x'.repeat(1024 * 1024 - 500) });
    const bytes = Buffer.concat([
      event({ role: 'assistant', content: '' }),
      large,
      event({}, {}, 'stop'),
      done,
    ]);
    const pieces = cutAt(
      bytes,
      Array.from({ length: 200 }, (_, index) => index * 5000),
    );
    const result = readStream('openai', context, pieces);
    expect(result.phase).toBe('finished');
    expect(result.output).toContain(large.toString('latin1'));
  });

  test('an event over 1 MiB is a failure, with what came before it', () => {
    const bytes = Buffer.concat([event({ content: 'first' }), event({ content: 'x'.repeat(1024 * 1024) })]);
    const result = readStream('openai', context, cutAt(bytes, [70_000, 200_000, 900_000]));
    expect(result.failure?.code).toBe('event_too_large');
    expect(chunksOf(result.output)).toHaveLength(1);
    expect(readStream('openai', context, [bytes])).toEqual(result);
  });
});
