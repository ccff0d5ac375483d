import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { registerKeySchema, registerUserSchema } from '../../../src/core/account/account-requests.ts';
import { foldEmail } from '../../../src/core/account/email.ts';
import { chatRequestSchema } from '../../../src/core/request/chat-request.ts';
import addresses from '../net/addresses.json' with { type: 'json' };

/** Every UTF-16 unit: controls, separators, halves of pairs. */
const anyText = fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) });
const email = (text: unknown): boolean => registerUserSchema.safeParse({ email: text }).success;
const key = (fields: object): boolean =>
  registerKeySchema.safeParse({ provider: 'openai', api_key: 'sk-1', ...fields }).success;
const chat = (fields: object): boolean =>
  chatRequestSchema.safeParse({
    model: 'gw/cheap',
    messages: [{ role: 'user', content: 'hi' }],
    ...fields,
  }).success;

describe('a registration', () => {
  test.each(['a@example.com', ' a@example.com ', 'First.Last+tag@sub.example.co.in', 'A@EXAMPLE.COM'])(
    'takes %j, as given',
    (text) => {
      expect(registerUserSchema.parse({ email: text }).email).toBe(text);
    },
  );

  test.each([
    '',
    ' ',
    'a',
    'a@',
    '@b.c',
    'a b@example.com',
    'a@b@c.com',
    null,
    1,
    'a@example.com\u0000',
    'a@b\ud800.com',
  ])('refuses %j', (text) => expect(email(text)).toBe(false));

  test.each(addresses)('$email: accepted is $accepted', (row) => {
    expect(email(row.email)).toBe(row.accepted);
    if (row.folded !== undefined) expect(foldEmail(row.email)).toBe(row.folded);
  });

  test('of any text is accepted or refused, and an accepted one folds to itself', () => {
    const part = fc.string({ unit: fc.constantFrom('a', 'Z', '.', '-', '@', 'é', 'ß', '漢', '%', '[', '0') });
    fc.assert(
      fc.property(
        fc.oneof(
          anyText,
          fc.tuple(part, part).map((halves) => halves.join('@')),
        ),
        (text) => {
          if (!email(text)) return;
          expect(foldEmail(foldEmail(text))).toBe(foldEmail(text));
          expect(email(foldEmail(text))).toBe(true);
        },
      ),
    );
  });

  test('takes an address of 254 characters and not of 255', () => {
    const address = (length: number): string => {
      const tail = `@${'d'.repeat(60)}.${'e'.repeat(60)}.${'f'.repeat(55)}.com`;
      return 'l'.repeat(length - tail.length) + tail;
    };
    const fits = [...Array(300).keys()].slice(185).filter((length) => email(address(length)));
    expect(Math.max(...fits)).toBeLessThanOrEqual(254);
  });

  test.each(['a', ' ', ' a', 'a '])('costs what the length of a key of %j costs, not its square', (text) => {
    const cpuMs = (length: number): number => {
      const api_key = `${text.repeat(length / text.length)}\u007f`;
      const before = process.cpuUsage();
      expect(key({ api_key })).toBe(false);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    };
    const tries = [1, 2, 3].map(() => ({ short: cpuMs(20_000), long: cpuMs(40_000) }));
    // Below some milliseconds the ratio says nothing; the square of 40,000 takes seconds.
    expect(tries.some(({ short, long }) => long < 10 || long <= 3 * short)).toBe(true);
  });

  test.each([' a', 'a ', 'a b', ' ~'])('takes the key %j', (api_key) => expect(key({ api_key })).toBe(true));
  test.each(['', ' ', '   ', 'a\n', 'a\u007f', 'é'])('refuses the key %j', (api_key) =>
    expect(key({ api_key })).toBe(false),
  );

  test('refuses other fields', () => {
    expect(registerUserSchema.safeParse({ email: 'a@example.com', admin: true }).success).toBe(false);
  });
});

describe('a provider key', () => {
  test.each<[name: string, fields: object, accepted: boolean]>([
    ['of an unknown provider', { provider: 'nobody' }, false],
    ['of a name every object has', { provider: 'constructor' }, false],
    ['that is empty', { api_key: '' }, false],
    ['of spaces only', { api_key: '   ' }, false],
    ['with a line break, which would smuggle a header', { api_key: 'sk\r\nx: y' }, false],
    ['with a letter that is not ASCII', { api_key: 'sk-é' }, false],
    ['with a space inside', { api_key: 'sk 1' }, true],
    ['of 8192 characters', { api_key: 'k'.repeat(8192) }, true],
    ['of 8193 characters', { api_key: 'k'.repeat(8193) }, false],
    ['with a label of 128 code points', { label: '😀'.repeat(128) }, true],
    ['with a label of 129 code points', { label: 'x'.repeat(129) }, false],
    ['with a line break in its label', { label: 'a\nb' }, false],
    ['with half a character in its label', { label: 'a\ud800' }, false],
    ['with null for what it lacks', { label: null, base_url: null, declared_region: null }, true],
    ['with an empty region', { declared_region: ' ' }, false],
    ['with an unknown field', { owner: 'me' }, false],
  ])('%s', (_name, fields, accepted) => expect(key(fields)).toBe(accepted));
});

describe('a chat body', () => {
  const ranges = [
    ['temperature', 0, 2],
    ['top_p', 0, 1],
    ['presence_penalty', -2, 2],
    ['frequency_penalty', -2, 2],
  ] as const;

  test.each(ranges)('takes %s from %d to %d and nothing else', (name, least, most) => {
    fc.assert(
      fc.property(fc.double(), (value) => {
        expect(chat({ [name]: value })).toBe(value >= least && value <= most);
      }),
      { examples: [[least], [most], [most + 1e-9], [least - 1e-9], [Number.NaN], [-0]] },
    );
  });

  test.each([
    ['n', 1, 10],
    ['max_tokens', 1, Number.MAX_SAFE_INTEGER],
    ['max_completion_tokens', 1, Number.MAX_SAFE_INTEGER],
  ])('takes whole numbers for %s from %d to %d', (name, least, most) => {
    for (const value of [least, most]) expect(chat({ [name]: value })).toBe(true);
    for (const value of [least - 1, most + 1, 1.5, '1', null, true])
      expect(chat({ [name]: value })).toBe(false);
  });

  test.each<[name: string, fields: object, accepted: boolean]>([
    ['without messages', { messages: [] }, false],
    ['with a message that is no object', { messages: ['hi'] }, false],
    ['with the role developer', { messages: [{ role: 'developer', content: 'x' }] }, false],
    [
      'with each known role',
      { messages: ['system', 'user', 'assistant', 'tool'].map((role) => ({ role })) },
      true,
    ],
    ['with a number for content', { messages: [{ role: 'user', content: 1 }] }, false],
    ['with a part without a type', { messages: [{ role: 'user', content: [{ text: 'x' }] }] }, false],
    ['with null content', { messages: [{ role: 'assistant', content: null }] }, true],
    ['with a stop text', { stop: 'x' }, true],
    ['with stop texts', { stop: ['x', 'y'] }, true],
    ['with a stop of numbers', { stop: [1] }, false],
    ['with a stream flag that is text', { stream: 'true' }, false],
    ['with null for a known field', { temperature: null }, false],
    ['with an empty model', { model: '' }, false],
    ['with an unknown field', { logit_bias: {} }, false],
  ])('%s', (_name, fields, accepted) => expect(chat(fields)).toBe(accepted));

  test('keeps unknown fields of messages as they are', () => {
    const message = {
      role: 'tool',
      content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }],
      tool_call_id: 'call_1',
      name: 'f',
      tool_calls: [{ id: 1 }],
    };
    const parsed = chatRequestSchema.parse({ model: 'gw/cheap', messages: [message] });
    expect(parsed.messages[0]).toEqual(message);
  });
});
