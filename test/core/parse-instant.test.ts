import { describe, expect, test } from 'vitest';
import { parseInstant } from '../../src/core/parse-instant.ts';

describe('instants', () => {
  test.each([
    ['Sun, 06 Nov 1994 08:49:37 GMT', Date.UTC(1994, 10, 6, 8, 49, 37)],
    [' Sat, 21 Nov 2026 10:00:00 GMT ', Date.UTC(2026, 10, 21, 10)],
    ['2026-07-23T00:00:00Z', Date.UTC(2026, 6, 23)],
    ['2026-07-23T05:30:00.250+05:30', Date.UTC(2026, 6, 23, 0, 0, 0, 250)],
    ['Sat, 31 Feb 2026 10:00:12 GMT', null],
    ['Sat, 21 Foo 2026 10:00:12 GMT', null],
    ['2026-07-23', null],
    ['2026-07-23T00:00:00', null],
    ['1', null],
    ['tomorrow', null],
    ['', null],
  ])('%s', (text, milliseconds) => {
    expect(parseInstant(text)).toBe(milliseconds);
  });
});
