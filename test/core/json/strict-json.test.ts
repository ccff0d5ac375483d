import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseStrictJson } from '../../../src/core/json/strict-json.ts';

const parse = (text: string) => parseStrictJson(text, text.includes('\\u'));

describe('strict JSON', () => {
  test('is what JSON.parse makes of it', () => {
    fc.assert(
      fc.property(
        fc.jsonValue().filter((value) => !JSON.stringify(value).includes('"__proto__":')),
        (value) => {
          const text = JSON.stringify(value);
          expect(parse(text)).toEqual({ kind: 'value', value: JSON.parse(text) });
        },
      ),
    );
  });

  test.each([
    ['__proto__', '{"__proto__":1}'],
    ['__proto__', '[{"a":[{"\\u005f_proto__":null}]}]'],
    ['__proto__', '{"a":"__proto__","__proto__":{}}'],
    ['constructor.prototype', '{"constructor":{"prototype":1}}'],
    ['constructor.prototype', '[[{"constructor":{"a":1,"prototype":null}}]]'],
    ['constructor.prototype', '{"\\u0063onstructor":{"prototyp\\u0065":{}}}'],
  ] as const)('has no key %s: %s', (key, text) => {
    expect(parse(text)).toEqual({ kind: 'forbidden-key', key });
  });

  test.each([
    '"__proto__"',
    '{"a":"__proto__"}',
    '{"constructor":1}',
    '{"constructor":null}',
    '{"constructor":{"prototyp":1}}',
    '{"prototype":{"constructor":1}}',
    '["constructor",{"prototype":1}]',
  ])('may speak of them: %s', (text) => {
    expect(parse(text)).toEqual({ kind: 'value', value: JSON.parse(text) });
  });

  test.each(['', '{', '{"a":1,}', '{"__proto__":1', "{'a':1}", '\ufeff'])('is JSON: %j', (text) => {
    expect(parse(text)).toEqual({ kind: 'no-json' });
  });

  test('may begin with a byte order mark, and be as deep as it likes', () => {
    expect(parse('\ufeff[1]')).toEqual({ kind: 'value', value: [1] });
    const deep = `${'[{"\\u0061":'.repeat(50_000)}1${'}]'.repeat(50_000)}`;
    expect(parse(deep).kind).toBe('value');
  });
});
