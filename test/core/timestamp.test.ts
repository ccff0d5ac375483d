import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatTimestampMicros, parseTimestampMicros } from '../../src/core/timestamp.ts';

const epochYearOne = -62_135_596_800_000_000n;
const endOfYear9999 = 253_402_300_799_999_999n;
const instants = fc.bigInt({ min: epochYearOne, max: endOfYear9999 });

test.each([
  ['1970-01-01T00:00:00Z', 0n],
  ['1970-01-01T00:00:00.000001Z', 1n],
  ['1969-12-31T23:59:59.999999Z', -1n],
  ['2026-11-20T10:00:00.5Z', 1_795_168_800_500_000n],
  ['2026-11-20T10:00:00,5Z', 1_795_168_800_500_000n],
  ['2026-11-20t15:30:00+05:30', 1_795_168_800_000_000n],
  ['2026-11-20T15:30:00 05:30', 1_795_168_800_000_000n],
  ['2026-11-20T15:30+0530', 1_795_168_800_000_000n],
  ['2026-11-20T05:00:00-05', 1_795_168_800_000_000n],
  ['2026-11-20T10:00:00.123456789z', 1_795_168_800_123_456n],
  ['2024-02-29T00:00:00Z', 1_709_164_800_000_000n],
  ['2000-02-29T00:00:00Z', 951_782_400_000_000n],
])('%s is %s microseconds after the epoch', (text, micros) => {
  expect(parseTimestampMicros(text)).toBe(micros);
});

test.each([
  '',
  'infinity',
  '-infinity',
  'tomorrow',
  'now',
  'epoch',
  '2026-11-20',
  '2026-11-20T10:00:00',
  '2026-11-20 10:00:00Z',
  '2026-02-29T00:00:00Z',
  '1900-02-29T00:00:00Z',
  '2026-04-31T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-00-01T00:00:00Z',
  '2026-01-00T00:00:00Z',
  '2026-01-01T24:00:00Z',
  '2026-01-01T00:60:00Z',
  '2026-01-01T00:00:60Z',
  '2026-01-01T00:00:00+24:00',
  '2026-01-01T00:00:00+00:60',
  '2026-01-01T00:00:00.Z',
  '2026-01-01T00:00:00.1234567890Z',
  '2026-01-01T00:00:00 UTC',
  '0001-01-01T00:00:00+00:01',
  '9999-12-31T23:59:59-00:01',
  '0000-01-01T00:00:00Z',
  '+12026-01-01T00:00:00Z',
  '٢٠٢٦-01-01T00:00:00Z',
  '2026-01-01T00:00:00Z\n',
  "2026-01-01T00:00:00Z'; SELECT pg_sleep(9)",
])('%j is no timestamp with a time zone', (text) => {
  expect(parseTimestampMicros(text)).toBeNull();
});

test('what is formatted is read back to the microsecond', () => {
  fc.assert(
    fc.property(instants, (micros) => {
      const text = formatTimestampMicros(micros);
      expect(text).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/);
      expect(parseTimestampMicros(text)).toBe(micros);
    }),
  );
});

test('whole milliseconds agree with Date', () => {
  fc.assert(
    fc.property(fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }), (ms) => {
      expect(formatTimestampMicros(BigInt(ms) * 1000n)).toBe(new Date(ms).toISOString().replace('Z', '000Z'));
    }),
  );
});

test('an offset moves the instant and nothing else', () => {
  const offset = fc.tuple(fc.constantFrom('+', '-'), fc.nat({ max: 23 }), fc.nat({ max: 59 }));
  const middle = fc.bigInt({ min: epochYearOne / 2n, max: endOfYear9999 / 2n });
  fc.assert(
    fc.property(middle, offset, (micros, [sign, hours, minutes]) => {
      const shift = BigInt((hours * 60 + minutes) * (sign === '-' ? -1 : 1)) * 60_000_000n;
      const zone = `${sign}${String(hours).padStart(2, '0')}:${String(minutes).padStart(2, '0')}`;
      const local = formatTimestampMicros(micros + shift).replace('Z', zone);
      expect(parseTimestampMicros(local)).toBe(micros);
    }),
  );
});

test('refuses to format what four digits of year cannot show', () => {
  expect(() => formatTimestampMicros(endOfYear9999 + 1n)).toThrow(RangeError);
  expect(() => formatTimestampMicros(epochYearOne - 1n)).toThrow(RangeError);
});
