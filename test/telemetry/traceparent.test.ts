import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readTraceparent, writeTraceparent } from '../../src/telemetry/traceparent.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';
const hexOf = (length: number) =>
  fc
    .uint8Array({ minLength: length, maxLength: length })
    .filter((bytes) => bytes.some((byte) => byte > 0))
    .map((bytes) => Buffer.from(bytes).toString('hex'));

describe('traceparent (W3C Trace Context, level 1)', () => {
  test('is read as it was written', () => {
    fc.assert(
      fc.property(hexOf(16), hexOf(8), fc.boolean(), (trace, span, sampled) => {
        const read = readTraceparent(writeTraceparent({ traceId: trace, spanId: span, sampled }), undefined);
        expect(read).toEqual({ traceId: trace, spanId: span, traceFlags: Number(sampled), isRemote: true });
      }),
    );
  });

  test.each<[why: string, value: string | string[] | undefined]>([
    ['is missing', undefined],
    ['is there twice', [`00-${traceId}-${spanId}-01`, `00-${traceId}-${spanId}-01`]],
    ['is empty', ''],
    ['is in upper case', `00-${traceId.toUpperCase()}-${spanId}-01`],
    ['has an invalid version', `ff-${traceId}-${spanId}-01`],
    ['has version 00 and more fields', `00-${traceId}-${spanId}-01-x`],
    ['has no trace', `00-${'0'.repeat(32)}-${spanId}-01`],
    ['has no span', `00-${traceId}-${'0'.repeat(16)}-01`],
    ['is cut', `00-${traceId}-${spanId}`],
    ['has a line break inside', `00-${traceId}-${spanId}-01\r\nx: y`],
  ])('is nobody’s when it %s', (_why, value) => {
    expect(readTraceparent(value, undefined)).toBeNull();
  });

  test('of a later version is read by what it shares with ours', () => {
    expect(readTraceparent(`cc-${traceId}-${spanId}-03-what-ever`, undefined)).toMatchObject({
      traceId,
      traceFlags: 1,
    });
  });

  test('keeps a trace state of sane size', () => {
    const parent = `00-${traceId}-${spanId}-01`;
    expect(readTraceparent(parent, 'a=1,b=2')?.traceState?.serialize()).toBe('a=1,b=2');
    expect(readTraceparent(parent, `a=${'x'.repeat(2000)}`)?.traceState).toBeUndefined();
  });

  test('never throws', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (parent, state) => {
        readTraceparent(parent, state);
      }),
    );
  });
});
