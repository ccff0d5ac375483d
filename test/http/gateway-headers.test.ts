import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../src/core/errors.ts';
import { providerNames } from '../../src/core/provider-name.ts';
import type { ChatOptions } from '../../src/core/request/chat-call.ts';
import type { LegacyHeaders } from '../../src/http/gateway-headers.ts';
import { gatewayHeaders, readGatewayHeaders, usesLegacyHeader } from '../../src/http/gateway-headers.ts';

/** Headers as Node hands them out, each sent once. */
const sent = (headers: Record<string, string>) => ({ headers, rawHeaders: Object.entries(headers).flat() });

const accepted = { name: 'oldname', ended: false } as const;
const ended = { name: 'oldname', ended: true } as const;

const read = (headers: Record<string, string>, legacy: LegacyHeaders | null = null): ChatOptions =>
  readGatewayHeaders(sent(headers), legacy);

function refusal(headers: Record<string, string>, legacy: LegacyHeaders | null = null): GatewayError {
  try {
    read(headers, legacy);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('was accepted');
}

const integers = fc.bigInt(-(10n ** 30n), 10n ** 30n);
const notIntegers = fc
  .oneof(
    fc.string(),
    fc.constantFrom('', ' 60', '6e1', '0x3c', '60.0', '+60', '60s', '٦٠', '60, 70', '--1', 'NaN'),
  )
  .filter((text) => !/^-?[0-9]+$/.test(text));

describe('no headers', () => {
  test('mean no cache, no override, no residency, no timeout', () => {
    expect(readGatewayHeaders(sent({}), accepted)).toMatchObject({
      cacheTtlSeconds: null,
      override: null,
      residency: null,
      timeoutMs: null,
    });
    expect(usesLegacyHeader(sent({}), accepted)).toBe(false);
  });
});

test('every header of the table is looked for', () => {
  const looked = new Set<string>();
  const get = (headers: Record<string, string>, name: string): string | undefined => {
    looked.add(name);
    return headers[name];
  };
  // With it, the header that says for how long is worth a look.
  const headers = new Proxy({ 'x-gateway-cache': 'true' }, { get: (of, name) => get(of, String(name)) });
  readGatewayHeaders({ headers, rawHeaders: [] }, null);
  expect([...looked].sort()).toEqual(
    Object.values(gatewayHeaders)
      .map(({ lowerName }) => lowerName)
      .sort(),
  );
});

describe('a header that was sent more than once', () => {
  /** As Node hands it out: joined, and raw. */
  const repeated = (name: string, values: readonly string[]) => ({
    headers: { [name.toLowerCase()]: values.join(', ') },
    rawHeaders: ['Host', 'x', ...values.flatMap((value) => [name, value])],
  });

  test.each([
    ['X-Gateway-Override-Model', ['openai:a', 'openai:b']],
    ['X-Gateway-Cache', ['true', 'false']],
    ['X-Gateway-Cache-TTL', ['60', '70']],
    ['X-Gateway-Residency', ['india', 'global']],
    ['X-Gateway-Timeout', ['5', '']],
  ])('is refused when the values differ: %s', (name, values) => {
    expect(() => readGatewayHeaders(repeated(name, values), null)).toThrow(
      expect.objectContaining({ status: 422, param: name, code: 'repeated_header' }),
    );
  });

  test('counts once when the values are equal', () => {
    const options = (name: string, value: string) =>
      readGatewayHeaders(repeated(name, [value, value, value]), null);
    expect(options('x-gateway-override-model', 'openai:a').override?.model).toBe('a');
    expect(options('X-GATEWAY-CACHE', 'true').cacheTtlSeconds).toBe(3600);
    expect(options('X-Gateway-Timeout', '5').timeoutMs).toBe(5000);
  });

  test('is told from one whose value holds a comma', () => {
    const value = 'self_hosted/one, two:m';
    expect(read({ 'x-gateway-override-model': value }).override?.selector).toBe('one, two');
  });
});

describe('a model name beyond ASCII', () => {
  test('is read as UTF-8', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }), (model) => {
        fc.pre(model.isWellFormed() && model.length <= 256);
        const value = Buffer.from(`openai:${model}`).toString('latin1');
        expect(read({ 'x-gateway-override-model': value }).override?.model).toBe(model);
      }),
      { examples: [['modèle'], ['मॉडल']] },
    );
  });

  test('is refused when it is something else', () => {
    const error = refusal({ 'x-gateway-override-model': 'openai:mod\u00e8le' });
    expect([error.param, error.code]).toEqual(['X-Gateway-Override-Model', 'invalid_override']);
  });
});

describe('X-Gateway-Cache', () => {
  test.each(['true', 'TRUE', ' True '])('%j opts in for an hour', (value) => {
    expect(read({ 'x-gateway-cache': value }).cacheTtlSeconds).toBe(3600);
  });

  test.each(['false', '1', 'yes', '', 'true, true'])('%j does not opt in', (value) => {
    expect(read({ 'x-gateway-cache': value }).cacheTtlSeconds).toBeNull();
  });
});

describe('X-Gateway-Cache-TTL', () => {
  test('takes any integer, clamped to 60 to 86400 seconds', () => {
    fc.assert(
      fc.property(integers, (value) => {
        const ttl = read({ 'x-gateway-cache': 'true', 'x-gateway-cache-ttl': String(value) }).cacheTtlSeconds;
        expect(ttl).toBe(value < 60n ? 60 : value > 86_400n ? 86_400 : Number(value));
      }),
      { examples: [[59n], [60n], [61n], [86_399n], [86_400n], [86_401n], [0n], [-5n]] },
    );
  });

  test('refuses everything else, caching or not', () => {
    fc.assert(
      fc.property(notIntegers, fc.boolean(), (value, cached) => {
        const error = refusal({
          'x-gateway-cache-ttl': value,
          ...(cached ? { 'x-gateway-cache': 'true' } : {}),
        });
        expect([error.status, error.type, error.param]).toEqual([
          422,
          'invalid_request_error',
          'X-Gateway-Cache-TTL',
        ]);
      }),
    );
  });

  test('alone does not opt in', () => {
    expect(read({ 'x-gateway-cache-ttl': '120' }).cacheTtlSeconds).toBeNull();
  });
});

describe('X-Gateway-Timeout', () => {
  test('takes any integer, clamped to 1 to 300 seconds', () => {
    fc.assert(
      fc.property(integers, (value) => {
        const expected = value < 1n ? 1000 : value > 300n ? 300_000 : Number(value) * 1000;
        expect(read({ 'x-gateway-timeout': String(value) }).timeoutMs).toBe(expected);
      }),
      { examples: [[0n], [1n], [300n], [301n], [-1n]] },
    );
  });

  test('refuses everything else', () => {
    fc.assert(
      fc.property(notIntegers, (value) => {
        expect(refusal({ 'x-gateway-timeout': value }).param).toBe('X-Gateway-Timeout');
      }),
    );
  });
});

describe('X-Gateway-Residency', () => {
  test.each(['india', 'India', 'INDIA', ' india '])('%j restricts to India', (value) => {
    expect(read({ 'x-gateway-residency': value }).residency).toBe('india');
  });

  test('refuses everything else: a restriction must never be lost to a typing error', () => {
    fc.assert(
      fc.property(
        fc.string().filter((text) => text.trim().toLowerCase() !== 'india'),
        (value) => {
          expect(refusal({ 'x-gateway-residency': value }).param).toBe('X-Gateway-Residency');
        },
      ),
      { examples: [[''], ['in'], ['global'], ['india, india'], ['indıa']] },
    );
  });
});

describe('X-Gateway-Override-Model', () => {
  const model = fc.string({ minLength: 1, maxLength: 256 });

  test('splits at the first colon only', () => {
    fc.assert(
      fc.property(fc.constantFrom(...providerNames), model, (provider, name) => {
        expect(read({ 'x-gateway-override-model': `${provider}:${name}` }).override).toEqual({
          provider,
          selector: null,
          model: name,
        });
      }),
      { examples: [['together', 'a/b:c:d']] },
    );
  });

  test('takes one key of several by label or id, for self_hosted', () => {
    const selectors = fc.string({ minLength: 1 }).filter((text) => !text.includes(':'));
    fc.assert(
      fc.property(selectors, model, (selector, name) => {
        const { override } = read({ 'x-gateway-override-model': `self_hosted/${selector}:${name}` });
        expect(override).toEqual({ provider: 'self_hosted', selector, model: name });
      }),
      { examples: [['team/prod', 'x']] },
    );
  });

  test.each([
    ['', 'invalid_override'],
    ['openai', 'invalid_override'],
    ['openai:', 'invalid_override'],
    [':gpt', 'invalid_override'],
    [`openai:${'m'.repeat(257)}`, 'invalid_override'],
    ['openai/key:gpt', 'invalid_override'],
    ['self_hosted/:m', 'invalid_override'],
    ['nobody:m', 'unknown_provider'],
    ['OpenAI:m', 'unknown_provider'],
    [' openai:m', 'unknown_provider'],
    ['constructor:m', 'unknown_provider'],
    ['__proto__:m', 'unknown_provider'],
    ['/x:m', 'unknown_provider'],
    ['gw/cheap:m', 'unknown_provider'],
  ])('refuses %j', (value, code) => {
    const error = refusal({ 'x-gateway-override-model': value });
    expect([error.status, error.type, error.param, error.code]).toEqual([
      422,
      'invalid_request_error',
      'X-Gateway-Override-Model',
      code,
    ]);
  });

  test.each([257, 300, 8000])('refuses a model of %i characters for its length', (length) => {
    const error = refusal({ 'x-gateway-override-model': `openai:${'m'.repeat(length)}` });
    expect(error.message).toBe('X-Gateway-Override-Model may name a model of at most 256 characters.');
    expect(error.code).toBe('invalid_override');
  });
});

describe('headers from before the rename', () => {
  const legacy = {
    'x-oldname-cache': 'true',
    'x-oldname-cache-ttl': '90',
    'x-oldname-residency': 'india',
    'x-oldname-timeout': '7',
    'x-oldname-override-model': 'sarvam:m',
  };

  test('are read while they are accepted', () => {
    expect(readGatewayHeaders(sent(legacy), accepted)).toMatchObject({
      cacheTtlSeconds: 90,
      override: { provider: 'sarvam', selector: null, model: 'm' },
      residency: 'india',
      timeoutMs: 7000,
    });
  });

  test.each(Object.entries(legacy))(
    'are noticed while they are accepted, whatever they say: %s',
    (name, value) => {
      for (const said of [value, 'nonsense']) {
        expect(usesLegacyHeader(sent({ [name]: said }), accepted)).toBe(true);
        expect(usesLegacyHeader(sent({ [name]: said }), ended)).toBe(false);
        expect(usesLegacyHeader(sent({ [name]: said }), null)).toBe(false);
      }
    },
  );

  test.each([
    ['x-oldname-cache-ttl', 'soon', null],
    ['x-oldname-residency', 'moon', null],
    ['x-oldname-timeout', 'never', null],
    ['x-oldname-override-model', 'no-colon', 'invalid_override'],
    ['x-oldname-override-model', 'nobody:m', 'unknown_provider'],
    ['x-oldname-override-model', 'openai/k:m', 'invalid_override'],
    ['x-oldname-override-model', `openai:${'m'.repeat(257)}`, 'invalid_override'],
    ['x-oldname-override-model', 'openai:mod\u00e8le', 'invalid_override'],
  ])('are named as they were sent where they are refused: %s: %s', (header, value, code) => {
    const error = refusal({ [header]: value }, accepted);
    expect([error.param, error.code]).toEqual([header, code]);
    expect(error.message.startsWith(`${header} `)).toBe(true);
  });

  test('are named as they were sent where they say two things', () => {
    const [header, values] = ['x-oldname-timeout', ['1', '2']];
    const raw = {
      headers: { [header]: values.join(', ') },
      rawHeaders: values.flatMap((value) => [header, value]),
    };
    expect(() => readGatewayHeaders(raw, accepted)).toThrow(
      expect.objectContaining({ param: header, code: 'repeated_header' }),
    );
  });

  test('say nothing where there was no other name', () => {
    expect(read(legacy)).toEqual(read({}));
  });

  test('are ignored afterwards, however wrong', () => {
    const { 'x-oldname-residency': _region, 'x-oldname-override-model': _target, ...harmless } = legacy;
    expect(read({ ...harmless, 'x-oldname-timeout': 'soon' }, ended)).toEqual(read({}));
  });

  test.each([
    ['x-oldname-residency', 'india', 'X-Gateway-Residency'],
    ['x-oldname-residency', '', 'X-Gateway-Residency'],
    ['x-oldname-override-model', 'sarvam:m', 'X-Gateway-Override-Model'],
    ['x-oldname-override-model', 'nonsense', 'X-Gateway-Override-Model'],
  ])('are refused afterwards where they say where a request may go: %s: %s', (header, value, current) => {
    const error = refusal({ [header]: value }, ended);
    expect([error.status, error.type, error.param, error.code]).toEqual([
      422,
      'invalid_request_error',
      current,
      'legacy_header',
    ]);
    expect(error.message).toBe(`${header} is no longer read; send ${current}.`);
  });

  test('are not looked at afterwards where the current one says it', () => {
    const sentBoth = { ...legacy, 'x-gateway-residency': 'india', 'x-gateway-override-model': 'sarvam:new' };
    expect(read(sentBoth, ended)).toMatchObject({ residency: 'india', override: { model: 'new' } });
  });

  test('lose against the current ones, even an empty one', () => {
    const current = { 'x-gateway-timeout': '9', 'x-gateway-cache': '' };
    const both = { 'x-oldname-timeout': 'soon', 'x-oldname-cache': 'true', ...current };
    expect(read(both, accepted)).toMatchObject({ timeoutMs: 9000, cacheTtlSeconds: null });
    expect(usesLegacyHeader(sent(both), accepted)).toBe(false);
  });
});

test('other headers change nothing', () => {
  fc.assert(
    fc.property(
      fc.dictionary(
        fc.stringMatching(/^[a-z-]{1,30}$/).filter((name) => !name.startsWith('x-gateway-')),
        fc.string(),
      ),
      (headers) => {
        expect(read(headers)).toEqual(read({}));
      },
    ),
  );
});
