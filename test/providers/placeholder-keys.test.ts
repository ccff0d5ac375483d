import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { registerKeySchema } from '../../src/core/account/account-requests.ts';
import { vendorNames } from '../../src/core/provider-name.ts';
import { providers } from '../../src/providers/registry.ts';

/** Every UTF-16 unit: controls, separators, halves of pairs. */
const anyText = fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) });
const own = { provider: 'self_hosted', base_url: 'https://a.example', declared_region: 'us' };
const accepts = (body: object): boolean => registerKeySchema.safeParse(body).success;
const sentTo = (secret: string) => providers.self_hosted.authHeaders(secret)['authorization'];

/** SPEC 4.2: the key of a server of the user's own may be any placeholder string. */
describe('a placeholder for a key', () => {
  test.each<[name: string, placeholder: string, sent: string | undefined]>([
    ['plain', 'none', 'Bearer none'],
    ['empty', '', undefined],
    ['blank', '   ', undefined],
    ['with a space', 'not needed', 'Bearer not needed'],
    ['of other letters', '… é ü 漢', 'Bearer %E2%80%A6 %C3%A9 %C3%BC %E6%BC%A2'],
    ['beyond the basic plane', '😀', 'Bearer %F0%9F%98%80'],
    ['with a line break, which would smuggle a header', 'a\r\nx-evil: 1', 'Bearer a%0D%0Ax-evil: 1'],
    ['with a NUL and a DEL', 'a\u0000b\u007f', 'Bearer a%00b%7F'],
    ['with a percent sign', '100%', 'Bearer 100%'],
  ])('%s is taken for a self_hosted server, and a header carries it', (_name, placeholder, sent) => {
    expect(accepts({ ...own, api_key: placeholder })).toBe(true);
    expect(sentTo(placeholder)).toBe(sent);
  });

  test.each([
    ['too long', 'k'.repeat(8193)],
    ['with half a character', 'a\ud800'],
  ])('%s is refused', (_name, placeholder) => {
    expect(accepts({ ...own, api_key: placeholder })).toBe(false);
  });

  test.each(vendorNames)('is no key for %s', (provider) => {
    for (const api_key of ['', '   ', 'é', 'a\r\nx-evil: 1', 'a\u0000'])
      expect(accepts({ provider, api_key })).toBe(false);
    expect(accepts({ provider, api_key: 'sk-1' })).toBe(true);
  });

  test('of any text makes no header but one line of printable ASCII', () => {
    fc.assert(
      fc.property(anyText, (placeholder) => {
        expect(sentTo(placeholder) ?? 'Bearer').toMatch(/^[\x20-\x7e]+$/);
      }),
    );
  });
});
