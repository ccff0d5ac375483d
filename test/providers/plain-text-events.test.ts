/** Text of the Messages API that is translated by its bytes: the same chunks as the parser makes. */
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { providers } from '../../src/providers/registry.ts';
import { contextFor } from './fixtures.ts';
import { cutAt, readStream } from './read-stream.ts';

const typed = (event: { readonly type: string; readonly [field: string]: unknown }): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
const delta = (inner: object, index: unknown = 0): string =>
  typed({ type: 'content_block_delta', index, delta: inner });
const text = (of: string, index: unknown = 0): string => delta({ type: 'text_delta', text: of }, index);
const thinking = (of: string): string => delta({ type: 'thinking_delta', thinking: of });

const beginning = typed({ type: 'message_start', message: { id: 'm1', model: 'claude', usage: {} } });
const ending =
  typed({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }) +
  typed({ type: 'message_stop' });
const context = contextFor('anthropic', {});

/** How often `act` parses JSON. */
function parses(act: () => void): number {
  const parse = vi.spyOn(JSON, 'parse');
  act();
  const { length } = parse.mock.calls;
  parse.mockRestore();
  return length;
}

/** A stream that has shown a token, and so knows how its block goes on. */
function started(first = text('Hi')) {
  const translator = providers.anthropic.streamTranslator(context);
  translator.push(Buffer.from(beginning + first));
  return translator;
}

describe('plain text of a block', () => {
  test.each([
    ['text', text('a'), text('there') + text(' "quoted"\n\t\\') + text('}}')],
    ['text with padding', text('a'), text('there').replace('"}}', '"}      }')],
    ['text of any script', text('a'), text('नमस्ते 🙂\u2028\uFEFF\uFFFD')],
    ['thinking', thinking('a'), thinking('b') + thinking('c')],
    ['of a later block', text('a', 7), text('b', 7)],
  ])('is not parsed: %s', (_what, first, read) => {
    const translator = started(first);
    expect(parses(() => translator.push(Buffer.from(read)))).toBe(0);
  });

  test.each([
    ['no text', text('')],
    ['another block', text('x', 1)],
    ['another kind', thinking('x')],
    ['a character by its number', text('x').replace('"x"', '"\\u0041"')],
    ['a solidus that is escaped', text('x').replace('"x"', '"\\/"')],
    ['a broken escape', text('x').replace('"x"', '"\\x"')],
    ['a line end in it', text('x').replace('"x"', '"a\\\nb"')],
    ['another field', delta({ type: 'text_delta', text: 'x', more: 1 })],
    ['the field again', text('x').replace('"x"', '"x","text":"y"')],
    ['CRLF', text('x').replaceAll('\n', '\r\n')],
    ['another name', text('x').replace('event: content_block_delta', 'event: error')],
    ['no name', text('x').replace('event: content_block_delta\n', '')],
    ['an end that is missing', text('x').slice(0, -1)],
    ['more bytes than an event may have', text('x'.repeat(context.maxEventBytes))],
  ])('is parsed, or refused, where an event has %s', (_what, odd) => {
    const bytes = Buffer.from(beginning + text('a') + odd + text('b') + ending);
    const whole = readStream('anthropic', context, [bytes]);
    expect(whole).toEqual(readStream('anthropic', context, cutAt(bytes, [...bytes.keys()].slice(1))));
    const translator = started();
    const before = translator.textBytes;
    const read = Buffer.from(odd);
    if (parses(() => translator.push(read)) === 0) expect(translator.textBytes).toBe(before);
  });

  test.each([
    ['a byte that is none', [0xff]],
    ['half a character', [0xe0, 0xa4]],
    ['half a pair', [0xed, 0xa0, 0x80]],
    ['a spelling that is too long', [0xc0, 0xaf]],
  ])('is for the parser to judge where it is not UTF-8: %s', (_what, wrong) => {
    const odd = Buffer.concat([Buffer.from(text('x').split('x')[0] ?? ''), Buffer.from(wrong)]);
    const bytes = Buffer.concat([Buffer.from(beginning + text('a')), odd, Buffer.from(`"}}\n\n${ending}`)]);
    const whole = readStream('anthropic', context, [bytes]);
    expect(whole).toEqual(readStream('anthropic', context, cutAt(bytes, [...bytes.keys()].slice(1))));
  });

  test('has the head of the message that came last', () => {
    const again = beginning.replace('m1', 'm2');
    const bytes = Buffer.from(beginning + text('a') + text('b') + again + text('c') + text('d') + ending);
    const { output } = readStream('anthropic', context, [bytes]);
    expect(output.match(/"id":"m1"/g)).toHaveLength(3);
    expect(output.match(/"id":"m2"/g)).toHaveLength(3);
  });
});

test('any stream is the same in one read as byte by byte, which leaves it all to the parser', () => {
  const words = fc.string({
    unit: fc.constantFrom('a', ' ', '"', '\\', '\n', '/', '}', 'é', '🙂', '\u2028'),
  });
  const event = fc.oneof(
    { weight: 4, arbitrary: words.map((word) => text(word)) },
    words.map((word) => thinking(word)),
    words.map((word) => text(word, 1)),
    words.map((word) => text(word).replace('"}}', '"}  }')),
    fc.constantFrom(': comment\n\n', typed({ type: 'ping' }), beginning, ending, '\n', 'data: {}\n\n'),
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), fc.array(fc.nat(600)), (events, positions) => {
      const bytes = Buffer.from(beginning + events.join('') + ending);
      const single = readStream('anthropic', context, cutAt(bytes, [...bytes.keys()].slice(1)));
      const within = positions.filter((position) => position < bytes.length);
      expect(readStream('anthropic', context, [bytes])).toEqual(single);
      expect(readStream('anthropic', context, cutAt(bytes, within))).toEqual(single);
    }),
  );
});
