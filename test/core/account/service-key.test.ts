import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hashServiceKey, hasServiceKeyShape, newServiceKey } from '../../../src/core/account/service-key.ts';

const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));

test('keys are gw_ and 49 base62 digits, and pass their own checksum', () => {
  fc.assert(
    fc.property(bytes32, (bytes) => {
      const key = newServiceKey(bytes);
      expect(key).toMatch(/^gw_[0-9A-Za-z]{49}$/);
      expect(hasServiceKeyShape(key, null)).toBe('current');
    }),
  );
});

test('different bytes give different keys, the extremes included', () => {
  const zero = newServiceKey(Buffer.alloc(32));
  expect(zero.slice(0, 46)).toBe(`gw_${'0'.repeat(43)}`);
  fc.assert(
    fc.property(bytes32, bytes32, (one, other) => {
      expect(newServiceKey(one) === newServiceKey(other)).toBe(one.equals(other));
    }),
  );
});

test('the checksum is the CRC-32 of what precedes it, six base62 digits', () => {
  const key = newServiceKey(Buffer.alloc(32, 0xff));
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  const value = [...key.slice(-6)].reduce((sum, digit) => sum * 62 + alphabet.indexOf(digit), 0);
  expect(value).toBe(crc32(key.slice(0, -6)));
});

test('a single wrong character anywhere is noticed without a query', () => {
  const key = newServiceKey(randomBytes(32));
  for (let index = 0; index < key.length; index += 1) {
    const wrong = key[index] === 'a' ? 'b' : 'a';
    expect(hasServiceKeyShape(key.slice(0, index) + wrong + key.slice(index + 1), null)).toBeNull();
  }
});

test.each([
  '',
  'gw_',
  'gw_short',
  'Bearer x',
  'sk-123',
  `gw_${'a'.repeat(10_240)}`,
  `${newServiceKey(Buffer.alloc(32))}\n`,
])('%j has no shape of a service key', (text) => {
  expect(hasServiceKeyShape(text, 'oldname')).toBeNull();
});

test('keys with the former name are recognised only while there is one', () => {
  const key = `oldname_${'x'.repeat(40)}`;
  expect(hasServiceKeyShape(key, 'oldname')).toBe('legacy');
  expect(hasServiceKeyShape(key, null)).toBeNull();
  expect(hasServiceKeyShape(key, 'other')).toBeNull();
  expect(hasServiceKeyShape(`oldname_${'x'.repeat(15)}`, 'oldname')).toBeNull();
  expect(hasServiceKeyShape(`oldname_${'x'.repeat(257)}`, 'oldname')).toBeNull();
  expect(hasServiceKeyShape(`oldname_${'x'.repeat(20)} ${'x'.repeat(20)}`, 'oldname')).toBeNull();
});

test('the hash is SHA-256 in hex', () => {
  expect(hashServiceKey('gw_x')).toBe(createHash('sha256').update('gw_x').digest('hex'));
});
