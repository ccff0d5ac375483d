import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { pathText } from '../../../src/core/path-text.ts';
import { parseOrThrow, shownParam } from '../../../src/http/schemas/parse.ts';
import { thrown } from '../thrown.ts';

describe('a parsed body', () => {
  const schema = z.strictObject({ list: z.array(z.strictObject({ n: z.number() })) });

  test.each<[name: string, value: unknown, param: string | null, code: string | null]>([
    ['a wrong type, by its path', { list: [{ n: 1 }, { n: 'x' }] }, 'list[1].n', null],
    ['an unknown field, by its path', { list: [{ n: 1, m: 2 }] }, 'list[0].m', 'unknown_field'],
    ['an unknown top-level field', { list: [], more: 1 }, 'more', 'unknown_field'],
    ['something that is no object', 'text', null, 'invalid_json'],
    ['nothing', undefined, null, 'invalid_json'],
    ['a list', [], null, 'invalid_json'],
  ])('names %s', (_name, value, param, code) => {
    const error = thrown(() => parseOrThrow(schema, value));
    expect([error.status, error.param, error.code]).toEqual([422, param, code]);
  });

  test('is returned when it fits', () => {
    expect(parseOrThrow(schema, { list: [{ n: 1 }] })).toEqual({ list: [{ n: 1 }] });
  });

  test('has paths as a person writes them, cut when a client made them long', () => {
    expect(pathText(['a', 0, 'b', 'c', 12])).toBe('a[0].b.c[12]');
    expect(shownParam('x'.repeat(64))).toHaveLength(64);
    expect(shownParam('x'.repeat(65))).toBe(`${'x'.repeat(64)}…`);
  });
});
