import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { KeyMask } from '../../../src/core/secret/key-mask.ts';
import { maskEchoes } from '../../../src/core/secret/mask-echo.ts';
import { maxReasonLength, redactReason } from '../../../src/core/secret/redact.ts';
import { Secret } from '../../../src/core/secret/secret.ts';

const maskOf = (secret: string) => new KeyMask(new Secret(secret));
const maskSecret = (text: string, secret: string) => maskOf(secret).words(text);
const withoutSecret = (body: Buffer, secret: string, cut: boolean) => maskOf(secret).bytes(body, cut);
const redacted = (text: string, secret: string | null) =>
  redactReason(secret === null ? text : maskSecret(text, secret));

const secret = 'Zq7+/"pass\\word=';

const unicode = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
const each = (spell: (character: string) => string, text: string): string =>
  [...text].map((character) => (/\w/.test(character) ? character : spell(character))).join('');

/** How servers write what is in a string: of the whole secret, or of what they take for special in it. */
const spellings: Readonly<Record<string, (text: string) => string>> = {
  'as JSON': (text) => JSON.stringify(text).slice(1, -1),
  'as JSON in JSON': (text) => JSON.stringify(JSON.stringify(text).slice(1, -1)).slice(1, -1),
  'as .NET writes JSON': (text) => each(unicode, text),
  'as .NET writes JSON, in capitals': (text) =>
    each((one) => unicode(one).toUpperCase().replace('U', 'u'), text),
  'as PHP writes JSON': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  'as Python writes it': (text) => text.replaceAll('\\', '\\\\').replaceAll("'", "\\'"),
  'as Python writes bytes': (text) => each((one) => `\\x${one.charCodeAt(0).toString(16)}`, text),
  'as an address': encodeURIComponent,
  'as a page, by numbers': (text) => each((one) => `&#${one.charCodeAt(0)};`, text),
  'as a page, by hexadecimal numbers': (text) => each((one) => `&#x${one.charCodeAt(0).toString(16)};`, text),
  'as a page, by names': (text) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;'),
  'as a page in JSON': (text) => JSON.stringify(each((one) => `&#${one.charCodeAt(0)};`, text)).slice(1, -1),
  'all of it by numbers': (text) => [...text].map(unicode).join(''),
};

describe.each(Object.entries(spellings))('a secret that is quoted %s', (_how, spell) => {
  test.each([secret, 'Qm9+vT/x7kLp/9sZ+Aa4EwRty2==', 'a&b"c\'d<e>f%2Bg', 'new\\nline and more'])(
    'is masked: %s',
    (given) => {
      const said = `{"näive": "before ${spell(given)} after ${spell(given)}", "100%": "\\u00e9 &amp; \\n"}`;
      const clean = `{"näive": "before [redacted] after [redacted]", "100%": "\\u00e9 &amp; \\n"}`;
      expect(withoutSecret(Buffer.from(said), given, false).toString()).toBe(clean);
      expect(maskSecret(said, given)).toBe(clean);
    },
  );

  test('is masked where it was cut in the middle', () => {
    const said = `before ${spell(secret)}`.slice(0, -4);
    const long = said.padStart(maxReasonLength, '.');
    expect(maskSecret(long, secret)).toBe(`${long.slice(0, -said.length)}before [redacted]`);
    // Its reader may have cut it before it took blanks out of it.
    expect(maskSecret(said, secret)).toBe('before [redacted]');
    expect(withoutSecret(Buffer.from(said), secret, true).toString()).toBe('before [redacted]');
  });
});

describe("a vendor's words", () => {
  test.each<[name: string, text: string, expected: string]>([
    [
      'stay as they are',
      'Rate limit reached for model x in 20 s.',
      'Rate limit reached for model x in 20 s.',
    ],
    ['lose the key', `Bad key ${secret}!`, 'Bad key [redacted]!'],
    ['lose the key every time', `${secret} ${secret}`, '[redacted] [redacted]'],
    ['lose the key as JSON escapes it', `{"key":${JSON.stringify(secret)}}`, '{"key":"[redacted]"}'],
    ['lose the key as a URL escapes it', `?k=${encodeURIComponent(secret)}`, '?k=[redacted]'],
    ['lose the key in base64', `Basic ${Buffer.from(secret).toString('base64')}`, 'Basic [redacted]=='],
    ['lose the key in base64url', `k=${Buffer.from(secret).toString('base64url')}&`, 'k=[redacted]&'],
    ['lose what looks like a key', 'Incorrect API key: sk-proj-abc123XYZ.', 'Incorrect API key: [redacted]'],
    ['lose a key that the vendor masked half', 'key sk-ab**********wxyz is wrong', 'key [redacted] is wrong'],
    ['lose a service key of ours', 'gw_0123456789abcdef', '[redacted]'],
    ['lose a bearer token', 'sent "Authorization: Bearer abc.def"', 'sent "Authorization: [redacted]"'],
    ['lose a key without a separator', 'AIzaSyA1234567890abcdefg', '[redacted]'],
    ['lose control characters', 'a\r\nb\u0000c\u001b[31m', 'a b c [31m'],
    ['become well-formed text', 'a\ud800b', 'a\ufffdb'],
  ])('%s', (_name, text, expected) => {
    expect(redacted(text, secret)).toBe(expected);
  });

  test.each([
    [
      'a placeholder as it was sent',
      'pläce-hölder',
      'key pl%C3%A4ce-h%C3%B6lder is wrong',
      'key [redacted] is wrong',
    ],
    ['a placeholder whose blanks were collapsed', 'my  secret \t pass', 'no my secret pass', 'no [redacted]'],
    ['nothing to a blank placeholder', '      ', 'two      words', 'two      words'],
  ])('lose %s', (_name, placeholder, text, expected) => {
    expect(redacted(text, placeholder)).toBe(expected);
  });

  test.each([' ', '\t', ' \t '])('lose a key that was registered with %j around it', (blank) => {
    const registered = `${blank}${secret}${blank}`;
    expect(redacted(`Bad key "${secret}"`, registered)).toBe('Bad key "[redacted]"');
    expect(withoutSecret(Buffer.from(`Bad key "${secret}"`), registered, false).toString()).toBe(
      'Bad key "[redacted]"',
    );
  });

  test('lose the key before their echoes: what an echo took of it, or of their length, would hide the rest', () => {
    const key = 'unlike-any-known-shape-0123456789';
    const phrase = 'The quick brown fox jumps over the lazy dog. ';
    const request = {
      messages: [{ content: `${phrase.repeat(9)}Incorrect key, it is known: unlike-any-other` }],
    };
    const cut = `${phrase.repeat(9)}key ${key}`.padStart(maxReasonLength + 9, '.').slice(0, maxReasonLength);
    const texts = [`Incorrect key, it is known: ${key}.`, cut];
    const kept = maskEchoes(
      texts.map((text) => maskSecret(text, key)),
      request,
    );
    expect(kept.map((text) => redacted(text, null)).filter((text) => /shape|unlike/.test(text))).toEqual([]);
  });

  test('are kept without a secret to look for', () => {
    expect(redacted('plain', null)).toBe('plain');
  });

  test('that end as the key begins, and were not cut, stay as they are', () => {
    expect(redacted('Invalid token', 'token-abc123')).toBe('Invalid token');
    expect(maskSecret('invalid_token', 'token-abc123')).toBe('invalid_token');
  });

  test('are not shredded by a secret of three characters', () => {
    expect(redacted('a bad abba', 'a')).toBe('a bad abba');
  });

  test('that were cut in the middle of the key lose what is left of it', () => {
    const long = 'unlike-any-known-shape-0123456789';
    for (let kept = 4; kept < long.length; kept += 1) {
      const cut = `you sent ${long}`
        .padStart(maxReasonLength + long.length - kept, '.')
        .slice(0, maxReasonLength);
      const clean = redacted(cut, long);
      expect(clean).toMatch(/you sent \[re/);
      expect(clean).not.toContain('unli');
    }
  });

  test('never hold the key, whatever surrounds it, and never grow beyond the limit', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 600 }),
        fc.string({
          minLength: 8,
          maxLength: 40,
          unit: fc.constantFrom('Q', 'z', '7', '+', '/', '"', '=', '%'),
        }),
        fc.string({ unit: 'binary', maxLength: 600 }),
        (before, key, after) => {
          const clean = redacted(before + key + after, key);
          expect(clean.includes(key)).toBe(false);
          expect(clean.length).toBeLessThanOrEqual(maxReasonLength);
          expect(clean.isWellFormed()).toBe(true);
        },
      ),
    );
  });
});

describe('a body that is passed on', () => {
  const cleaned = (text: string, cut = false, key = secret) =>
    withoutSecret(Buffer.from(text), key, cut).toString('utf8');

  test('is the same buffer without the key', () => {
    const body = Buffer.from('{"error":{"message":"Incorrect API key: sk-abc…, näive"}}');
    expect(withoutSecret(body, secret, false)).toBe(body);
    expect(withoutSecret(body, secret, true)).toBe(body);
  });

  test.each([
    ['plain', secret],
    ['as JSON escapes it', JSON.stringify(secret).slice(1, -1)],
    ['as a URL escapes it', encodeURIComponent(secret)],
    ['in base64url', Buffer.from(secret).toString('base64url')],
  ])('loses the key %s, and nothing else', (_form, quoted) => {
    expect(cleaned(`{"näive":"${quoted}","twice":"${quoted}"}`)).toBe(
      '{"näive":"[redacted]","twice":"[redacted]"}',
    );
  });

  test('keeps bytes that are no UTF-8', () => {
    const body = Buffer.from([0xff, ...Buffer.from(secret), 0xfe]);
    expect(withoutSecret(body, secret, false)).toEqual(
      Buffer.from([0xff, ...Buffer.from('[redacted]'), 0xfe]),
    );
  });

  test('loses a key of other letters than ASCII', () => {
    expect(cleaned('the key pläcehölder is wrong', false, 'pläcehölder')).toBe('the key [redacted] is wrong');
  });

  test('that was cut in the middle of the key loses what is left of it', () => {
    expect(cleaned(`you sent ${secret.slice(0, 6)}`, true)).toBe('you sent [redacted]');
    expect(cleaned(`you sent ${secret.slice(0, 6)}`)).toBe(`you sent ${secret.slice(0, 6)}`);
  });

  test('is not shredded by a placeholder of three characters', () => {
    expect(cleaned('a bad abba', true, 'bad')).toBe('a bad abba');
  });

  test('loses what any search would find, in one pass over it', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 4, maxLength: 8 });
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'x'), maxLength: 60 });
    fc.assert(
      fc.property(text, letters, (said, key) => {
        expect(cleaned(said, false, key)).toBe(said.replaceAll(key, '[redacted]'));
      }),
    );
  });

  test.each([
    ['usual', 'sk-some-usual-key-of-an-own-server'],
    ['long', '\u4e00 '.repeat(4_096)],
    ['long, and looks like escapes', '\\'.repeat(8_192)],
  ])('costs by its own length, whatever the key (%s)', (_what, key) => {
    const keyMask = maskOf(key);
    const words = 'The connection was closed.';
    // What the key may look like is found out once.
    expect([keyMask.words(words), keyMask.bytes(Buffer.from(words), false).toString()]).toEqual([
      words,
      words,
    ]);
    const looks = vi.spyOn(String.prototype, 'charCodeAt');
    const forms = vi.spyOn(globalThis, 'encodeURIComponent');
    for (let value = 0; value < 250; value += 1) {
      keyMask.bytes(Buffer.from('retry after 1'), false);
      keyMask.words(words);
    }
    const counts = [looks.mock.calls.length, forms.mock.calls.length] as const;
    looks.mockRestore();
    forms.mockRestore();
    expect(counts[0]).toBeLessThan(250 * 60 * words.length);
    expect(counts[1]).toBe(0);
  });

  test('of 64 KB costs no more where it is made to be dear', () => {
    const body = Buffer.alloc(64 * 1024, 'a');
    const looks = vi.spyOn(String.prototype, 'charCodeAt');
    withoutSecret(body, `b${'a'.repeat(8_191)}`, true);
    const { length } = looks.mock.calls;
    looks.mockRestore();
    expect(length).toBeGreaterThan(body.length);
    expect(length).toBeLessThan(40 * body.length);
  });
});
