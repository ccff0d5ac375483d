import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeLogCursor, encodeLogCursor } from '../../../src/core/log/log-cursor.ts';
import { acceptableRequestId } from '../../../src/core/request/request-id.ts';

const instant = fc.bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_799_999_999n });
const cursors = fc.record({
  createdAtMicros: instant,
  id: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
  sinceMicros: fc.option(instant),
  requestId: fc.option(fc.stringMatching(acceptableRequestId)),
});

function encoded(text: string): string {
  return Buffer.from(text).toString('base64url');
}

test('every cursor is read back as it was, and is base64url', () => {
  fc.assert(
    fc.property(cursors, (cursor) => {
      const text = encodeLogCursor(cursor);
      expect(text).toMatch(/^[A-Za-z0-9_-]{1,256}$/);
      expect(decodeLogCursor(text)).toEqual(cursor);
    }),
  );
});

test('a changed character gives null or another place, never an error', () => {
  const position = fc.nat({ max: 127 });
  const character = fc.integer({ min: 0, max: 0xffff });
  fc.assert(
    fc.property(cursors, position, character, (cursor, at, code) => {
      const text = encodeLogCursor(cursor);
      const index = at % text.length;
      const changed = text.slice(0, index) + String.fromCharCode(code) + text.slice(index + 1);
      const decoded = decodeLogCursor(changed);
      if (decoded !== null) expect(encodeLogCursor(decoded)).toBe(changed);
    }),
  );
});

test('any text gives null or a cursor that is spelled exactly so', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.base64String()), (text) => {
      const decoded = decodeLogCursor(text);
      if (decoded !== null) expect(encodeLogCursor(decoded)).toBe(text);
    }),
  );
});

test.each([
  ['nothing', ''],
  ['a number', 'MTIz'],
  ['another version', encoded('2,1,1,')],
  ['an id of 2^63', encoded(`1,0,${2n ** 63n},`)],
  ['a negative id', encoded('1,0,-1,')],
  ['a leading zero', encoded('1,0,01,')],
  ['minus zero', encoded('1,-0,1,')],
  ['a time beyond year 9999', encoded('1,253402300800000000,1,')],
  ['a since before year 1', encoded('1,0,1,-62135596800000001')],
  ['SQL', encoded("1,0,1,'; DROP TABLE users")],
  ['padding', `${encoded('1,0,1,')}=`],
  ['plain base64 of the same bytes', `${encoded('1,0,1,')}==`],
  ['ten kilobytes', 'A'.repeat(10_240)],
])('%s is malformed', (_name, text) => {
  expect(decodeLogCursor(text)).toBeNull();
});
