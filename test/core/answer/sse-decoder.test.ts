import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { SseEvent } from '../../../src/core/answer/sse-decoder.ts';
import { SseDecoder } from '../../../src/core/answer/sse-decoder.ts';
import { cpuMsOf } from '../../harness/measure/cpu-time.ts';

interface Decoded {
  readonly events: readonly (readonly [string, string])[];
  readonly overflowed: boolean;
}

const megabyte = 1024 * 1024;

function decode(pieces: readonly Buffer[], maxEventBytes = megabyte): Decoded {
  const decoder = new SseDecoder(maxEventBytes);
  const events: SseEvent[] = pieces.flatMap((piece) => decoder.push(piece));
  const last = decoder.flush();
  if (last !== null) events.push(last);
  return {
    events: events.map((event) => [event.type, event.data.toString('utf8')] as const),
    overflowed: decoder.overflowed,
  };
}

function pieces(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const edges = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
  return edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
}

describe('SSE decoder', () => {
  test.each<[string, string, [string, string][]]>([
    ['one event', 'data: a\n\n', [['', 'a']]],
    ['no space after the colon', 'data:a\n\n', [['', 'a']]],
    ['only one space is dropped', 'data:  a\n\n', [['', ' a']]],
    [
      'CRLF',
      'data: a\r\n\r\ndata: b\r\n\r\n',
      [
        ['', 'a'],
        ['', 'b'],
      ],
    ],
    [
      'CR',
      'data: a\r\rdata: b\r\r',
      [
        ['', 'a'],
        ['', 'b'],
      ],
    ],
    [
      'mixed line ends',
      'data: a\r\n\ndata: b\n\r\ndata: c\r\n\r',
      [
        ['', 'a'],
        ['', 'b'],
        ['', 'c'],
      ],
    ],
    ['several data lines', 'data: a\ndata:\ndata: b\n\n', [['', 'a\n\nb']]],
    ['a data line without a colon', 'data\n\n', [['', '']]],
    [
      'an event type',
      'event: ping\ndata: a\n\ndata: b\n\n',
      [
        ['ping', 'a'],
        ['', 'b'],
      ],
    ],
    ['an event type without data is nothing', 'event: ping\n\ndata: b\n\n', [['', 'b']]],
    ['comments', ': hello\n\n:\ndata: a\n: x\n\n', [['', 'a']]],
    ['id, retry and unknown fields', 'id: 1\nretry: 5\nfoo: x\ndatax: y\ndat: z\ndata: a\n\n', [['', 'a']]],
    ['a byte order mark', '\uFEFFdata: a\n\n', [['', 'a']]],
    ['only one, and only at the start', '\uFEFF\uFEFFdata: a\n\n\uFEFFdata: b\n\ndata: c\n\n', [['', 'c']]],
    [
      'Unicode line separators are no line ends',
      'data: a\u2028b\u2029c\u0085d\n\n',
      [['', 'a\u2028b\u2029c\u0085d']],
    ],
    ['a colon in the data', 'data: a: b\n\n', [['', 'a: b']]],
    ['many blank lines', '\n\n\ndata: a\n\n\n\n', [['', 'a']]],
    ['an end without the blank line', 'data: a\n', [['', 'a']]],
    [
      'an end inside a line',
      'data: a\n\ndata: b',
      [
        ['', 'a'],
        ['', 'b'],
      ],
    ],
    ['nothing', '', []],
  ])('%s', (_name, text, events) => {
    const bytes = Buffer.from(text);
    expect(decode([bytes])).toEqual({ events, overflowed: false });
    expect(decode([...bytes.keys()].map((at) => bytes.subarray(at, at + 1))).events).toEqual(events);
    for (const cut of bytes.keys()) expect(decode(pieces(bytes, [cut])).events).toEqual(events);
  });

  const fragment = fc.constantFrom(
    ...['data: ', 'data:', 'data', 'event: ', ': ', 'id: 7', '\n', '\n\n', '\r', '\r\n', '\r\n\r\n'],
    ...['{"a":1}', 'é', '🙂', '\u2028', '\uFEFF', ':', ' ', 'x'.repeat(40)],
  );
  const body = fc.array(fragment, { maxLength: 30 }).map((parts) => Buffer.from(parts.join('')));

  test('any two cuts of any body give the same events', () => {
    fc.assert(
      fc.property(
        body,
        fc.nat(),
        fc.nat(),
        fc.integer({ min: 1, max: 60 }),
        (bytes, first, second, limit) => {
          const cuts = [first % (bytes.length + 1), second % (bytes.length + 1)];
          expect(decode(pieces(bytes, cuts))).toEqual(decode([bytes]));
          expect(decode(pieces(bytes, cuts), limit)).toEqual(decode([bytes], limit));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('every single cut of a body gives the same events', () => {
    fc.assert(
      fc.property(body, (bytes) => {
        const whole = decode([bytes]);
        for (const cut of bytes.keys()) expect(decode(pieces(bytes, [cut]))).toEqual(whole);
      }),
      { numRuns: 100 },
    );
  });

  test('what is encoded comes back', () => {
    const text = fc.string({ unit: 'binary' }).map((given) => given.replace(/[\r\n]/g, ' '));
    fc.assert(
      fc.property(fc.array(text), fc.constantFrom('\n', '\r\n', '\r'), (texts, end) => {
        const bytes = Buffer.from(texts.map((given) => `data: ${given}${end}${end}`).join(''));
        expect(decode([bytes]).events).toEqual(
          texts.map((given) => ['', Buffer.from(given).toString('utf8')]),
        );
      }),
    );
  });

  test('an event of exactly the limit passes, one byte more does not', () => {
    expect(decode([Buffer.from(`data: ${'x'.repeat(94)}\n\n`)], 100).events).toHaveLength(1);
    const over = decode([Buffer.from(`data: a\n\ndata: ${'x'.repeat(95)}\n\ndata: b\n\n`)], 100);
    expect(over).toEqual({ events: [['', 'a']], overflowed: true });
  });

  test('an endless line stops at the limit and holds no more than that', () => {
    const decoder = new SseDecoder(megabyte);
    const piece = Buffer.alloc(64 * 1024, 'x');
    let pushed = 0;
    while (!decoder.overflowed) {
      expect(decoder.push(piece)).toEqual([]);
      pushed += piece.length;
    }
    expect(pushed).toBe(megabyte + piece.length);
    expect(decoder.push(Buffer.from('\n\ndata: a\n\n'))).toEqual([]);
    expect(decoder.flush()).toBeNull();
  });

  test.each([
    ['CR', '\r'],
    ['LF', '\n'],
    ['CRLF', '\r\n'],
    ['CR, comments among them', ':\r\r'],
  ])('a read of 2 MiB of lines that end in %s takes linear time', (_name, lines) => {
    const decoder = new SseDecoder(1024);
    const bytes = Buffer.from(`${lines.repeat((2 * 1024 * 1024) / lines.length)}\n`);
    // A search for the other line end at every line: half a minute.
    expect(cpuMsOf(() => decoder.push(bytes))).toBeLessThan(3_000);
  });

  test('an event of 1 MiB that comes byte by byte takes linear time', () => {
    const decoder = new SseDecoder(2 * megabyte);
    const bytes = Buffer.from(`data: ${'x'.repeat(megabyte)}\n\n`);
    let events = 0;
    for (let at = 0; at < bytes.length; at += 1) events += decoder.push(bytes.subarray(at, at + 1)).length;
    expect(events).toBe(1);
  });

  test('is idle only between events', () => {
    const decoder = new SseDecoder(megabyte);
    expect(decoder.idle).toBe(false);
    const states = ['data: a\n\n', 'data', ': b\n', '\n', 'data: c\r', '\r', '\n', ': x', '\n\n'].map(
      (piece) => {
        decoder.push(Buffer.from(piece));
        return decoder.idle;
      },
    );
    expect(states).toEqual([true, false, false, true, false, false, true, false, true]);
  });
});
