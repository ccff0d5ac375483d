import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { requestIdOf } from '../../src/http/request-id.ts';

describe('the request id', () => {
  const idOf = (sent: string | string[] | undefined): string =>
    requestIdOf({ headers: { 'x-request-id': sent } } as unknown as IncomingMessage, () => 'fresh');

  test('is the one the client sent when it is well formed', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/), (sent) => {
        expect(idOf(sent)).toBe(sent);
      }),
      { examples: [['x'.repeat(128)], ['-'], ['_']] },
    );
  });

  test('is a fresh one otherwise', () => {
    fc.assert(
      fc.property(
        fc.string().filter((text) => !/^[A-Za-z0-9_-]{1,128}$/.test(text)),
        (sent) => {
          expect(idOf(sent)).toBe('fresh');
        },
      ),
      { examples: [[''], ['x'.repeat(129)], ['a b'], ['a\n'], ['one, two'], ['é'], ['a.b']] },
    );
    expect(idOf(undefined)).toBe('fresh');
  });
});
