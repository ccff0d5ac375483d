import { describe, expect, test } from 'vitest';
import type { ResponseHead } from '../../../src/adapters/upstream/response-head.ts';
import { readResponseHead } from '../../../src/adapters/upstream/response-head.ts';

const head = (...lines: string[]): string => lines.join('\r\n');

function read(text: string): ResponseHead | null {
  return readResponseHead(Buffer.from(`${text}\r\n\r\n`, 'latin1'), text.length);
}

describe('a head that may be trusted', () => {
  test.each([
    ['a length', head('HTTP/1.1 200 OK', 'content-length: 12'), { kind: 'length', bytes: 12 }, true],
    ['an empty body', head('HTTP/1.1 200 OK', 'content-length: 0'), { kind: 'none' }, true],
    ['chunks', head('HTTP/1.1 200 OK', 'Transfer-Encoding: Chunked'), { kind: 'chunked' }, true],
    ['neither', head('HTTP/1.1 200 OK', 'x: y'), { kind: 'until-close' }, false],
    ['no body by its status', head('HTTP/1.1 204 No Content'), { kind: 'none' }, true],
    ['no body, of no bytes', head('HTTP/1.1 204 No Content', 'content-length: 0'), { kind: 'none' }, true],
    [
      'no body, with a length',
      head('HTTP/1.1 304 Not Modified', 'content-length: 9'),
      { kind: 'none' },
      false,
    ],
    [
      'no body, in chunks',
      head('HTTP/1.1 204 No Content', 'transfer-encoding: chunked'),
      { kind: 'none' },
      false,
    ],
    [
      'a wish to close',
      head('HTTP/1.1 200 OK', 'content-length: 1', 'Connection: Close'),
      { kind: 'length', bytes: 1 },
      false,
    ],
    ['the older version', head('HTTP/1.0 200 OK', 'content-length: 1'), { kind: 'length', bytes: 1 }, false],
    ['no reason', head('HTTP/1.1 200', 'content-length: 1'), { kind: 'length', bytes: 1 }, true],
    ['an interim status', head('HTTP/1.1 103 Early Hints', 'link: x'), { kind: 'none' }, true],
  ])('with %s', (_name, text, framing, persistent) => {
    expect(read(text)).toMatchObject({ framing, persistent });
  });

  test('keeps what came twice as a list, names in lower case, values without the space around them', () => {
    const refused = read(head('HTTP/1.1 200 OK', 'Set-Cookie:a=1', 'set-cookie: b=2 \t', 'X-É: no'));
    expect(refused).toBeNull();
    expect(read(head('HTTP/1.1 200 OK', 'Set-Cookie:a=1', 'set-cookie: b=2 \t'))?.headers).toEqual(
      Object.assign(Object.create(null), { 'set-cookie': ['a=1', 'b=2'] }),
    );
  });

  test('has no names but its own', () => {
    const headers = read(head('HTTP/1.1 200 OK', '__proto__: x', 'constructor: y'))?.headers ?? {};
    expect(Object.keys(headers)).toEqual(['__proto__', 'constructor']);
    expect(headers['toString']).toBeUndefined();
  });
});

test.each([
  ['a field of 5,000', head('HTTP/1.1 200 OK', `content-type: ${'a'.repeat(5_000)}`)],
  ['a hundred fields', head('HTTP/1.1 200 OK', ...Array(100).fill(`content-type: ${'a'.repeat(100)}`))],
])('of a type in %s no more than 2,048 characters are kept', (_what, text) => {
  const kept = read(text)?.contentType.length;
  expect(kept).toBeGreaterThanOrEqual(1_024);
  expect(kept).toBeLessThanOrEqual(2_048);
});

test.each([
  ['two lengths', head('HTTP/1.1 200 OK', 'content-length: 1', 'content-length: 2')],
  ['one length twice', head('HTTP/1.1 200 OK', 'content-length: 1', 'content-length: 1')],
  ['a list of lengths', head('HTTP/1.1 200 OK', 'content-length: 1, 1')],
  ['a length and chunks', head('HTTP/1.1 200 OK', 'content-length: 1', 'transfer-encoding: chunked')],
  ['a signed length', head('HTTP/1.1 200 OK', 'content-length: +1')],
  ['a hexadecimal length', head('HTTP/1.1 200 OK', 'content-length: 0x1')],
  ['an empty length', head('HTTP/1.1 200 OK', 'content-length:')],
  ['a length that is no safe integer', head('HTTP/1.1 200 OK', 'content-length: 9999999999999999')],
  ['another coding', head('HTTP/1.1 200 OK', 'transfer-encoding: gzip, chunked')],
  ['chunks twice', head('HTTP/1.1 200 OK', 'transfer-encoding: chunked', 'transfer-encoding: chunked')],
  ['chunks in the older version', head('HTTP/1.0 200 OK', 'transfer-encoding: chunked')],
  ['an interim status in the older version', head('HTTP/1.0 102 Processing', 'link: x')],
  ['a length of an interim answer', head('HTTP/1.1 103 Early Hints', 'content-length: 0')],
  ['chunks of an interim answer', head('HTTP/1.1 102 Processing', 'transfer-encoding: chunked')],
  ['space behind the coding', head('HTTP/1.1 200 OK', 'transfer-encoding: chunked\t')],
  ['space before the colon', head('HTTP/1.1 200 OK', 'content-length : 1')],
  ['a folded line', head('HTTP/1.1 200 OK', 'x: y', ' z')],
  ['no name', head('HTTP/1.1 200 OK', ': y')],
  ['no colon', head('HTTP/1.1 200 OK', 'xyz')],
  ['a line feed alone', head('HTTP/1.1 200 OK', 'x: y\nz: 1')],
  ['a carriage return alone', head('HTTP/1.1 200 OK', 'x: y\rz')],
  ['a NUL', head('HTTP/1.1 200 OK', 'x: \0')],
  ['another version', head('HTTP/1.2 200 OK')],
  ['no status', head('HTTP/1.1 OK')],
  ['a status of two digits', head('HTTP/1.1 20 OK')],
  ['a status of four digits', head('HTTP/1.1 2000 OK')],
  ['too many fields', head('HTTP/1.1 200 OK', ...Array.from({ length: 257 }, (_, at) => `x${at}: y`))],
])('a head with %s is none', (_name, text) => {
  expect(read(text)).toBeNull();
});
