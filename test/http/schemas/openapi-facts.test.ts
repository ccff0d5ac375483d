/** The description says of this gateway, with its profile and settings, what it takes and whom it lets in. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { registerKeySchema } from '../../../src/core/account/account-requests.ts';
import { checkProviderKey } from '../../../src/core/account/new-provider-key.ts';
import { encodeLogCursor } from '../../../src/core/log/log-cursor.ts';
import { gatewayHeaders, readGatewayHeaders } from '../../../src/http/gateway-headers.ts';
import { routeList } from '../../../src/http/route-table.ts';
import type { ApiFacts } from '../../../src/http/schemas/openapi.ts';
import { describedApi, openApiDocument } from '../../../src/http/schemas/openapi.ts';
import { logsQuerySchema, statsQuerySchema } from '../../../src/http/schemas/query-schemas.ts';

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly style?: string;
  readonly explode?: boolean;
  readonly schema: Readonly<Record<string, unknown>>;
}
interface Operation {
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly securitySchemes: Readonly<Record<string, unknown>> };
}

const chat = { developer_role: false, passthrough_fields: [] };
const documentOf = (facts: Partial<ApiFacts> = {}): Document =>
  openApiDocument('0.1.0', {
    chat,
    hasStore: true,
    registration: 'open',
    hasAdminApi: false,
    ...facts,
  }) as unknown as Document;
const listed = routeList.filter(({ undescribed }) => undescribed !== true);
const fits = (schema: object | boolean, value: unknown): boolean =>
  // Formats are hints to who makes values; what has to be refused is in patterns.
  new Ajv2020({ strict: false, validateFormats: false }).validate(schema, value);

describe('a gateway', () => {
  test.each<
    [name: string, facts: Partial<ApiFacts>, isThere: (needsStore: boolean, registers: boolean) => boolean]
  >([
    ['with everything has all routes', {}, () => true],
    ['without a database has no routes that need one', { hasStore: false }, (needsStore) => !needsStore],
    [
      'that lets nobody register has no registration',
      { registration: 'closed' },
      (_store, registers) => !registers,
    ],
    ['with a registration token has all routes', { registration: 'token' }, () => true],
    [
      'without a database has no registration, whatever its policy',
      { hasStore: false, registration: 'token' },
      (needsStore) => !needsStore,
    ],
  ])('%s', (_name, facts, isThere) => {
    const described = Object.entries(documentOf(facts).paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const expected = listed.filter(({ needsStore, auth }) => isThere(needsStore, auth === 'registration'));
    expect(described.sort()).toEqual(expected.map(({ method, path }) => `${method} ${path}`).sort());
  });

  test.each<
    [registration: ApiFacts['registration'], security: readonly object[], schemes: readonly string[]]
  >([
    ['open', [], ['serviceKey']],
    ['token', [{ registrationToken: [] }], ['serviceKey', 'registrationToken']],
  ])('whose registration is %s says what it needs', (registration, security, schemes) => {
    const { paths, components } = documentOf({ registration });
    expect(paths['/v1/users']?.['post']?.security).toEqual(security);
    expect(paths['/v1/keys']?.['post']).not.toHaveProperty('security');
    expect(Object.keys(components.securitySchemes)).toEqual(schemes);
  });
});

describe('a key is described as it is taken', () => {
  const own = { provider: 'self_hosted', api_key: '', base_url: 'https://a.example', declared_region: 'in' };
  const theirs = { provider: 'openai', api_key: 'sk-1' };

  test.each<[name: string, body: object]>([
    ['a vendor’s', theirs],
    ['with nulls', { ...theirs, label: null, base_url: null, declared_region: null }],
    ['of an unknown provider', { ...theirs, provider: 'other' }],
    ['without a secret', { provider: 'openai' }],
    ['with an empty secret', { ...theirs, api_key: '' }],
    ['with a secret of spaces', { ...theirs, api_key: '  ' }],
    ['with a secret that no header can carry', { ...theirs, api_key: 'sk-é' }],
    ['with another field', { ...theirs, region: 'in' }],
    ['with a label', { ...theirs, label: 'mine' }],
    ['with the longest label', { ...theirs, label: 'x'.repeat(128) }],
    ['with the longest label, of wide characters', { ...theirs, label: '\u{1f600}'.repeat(128) }],
    ['with a label too long', { ...theirs, label: 'x'.repeat(129) }],
    ['with a label of two lines', { ...theirs, label: 'a\nb' }],
    ['with a blank label', { ...theirs, label: ' ' }],
    ['with a label that an override would split', { ...theirs, label: 'a/b' }],
    ['of a vendor with an address', { ...theirs, base_url: 'https://a.example' }],
    ['of a vendor with a region', { ...theirs, declared_region: 'in' }],
    ['of a server of one’s own', own],
    ['of one with a placeholder', { ...own, api_key: 'é' }],
    ['of one without an address', { ...own, base_url: undefined }],
    ['of one with null for an address', { ...own, base_url: null }],
    ['of one without a region', { ...own, declared_region: undefined }],
    ['of one with null for a region', { ...own, declared_region: null }],
    ['of one with a blank region', { ...own, declared_region: ' ' }],
    ['of one with the longest region', { ...own, declared_region: 'x'.repeat(128) }],
    ['of one with a region too long', { ...own, declared_region: 'x'.repeat(129) }],
    ['of one with a label', { ...own, label: 'gpu box' }],
    ['of one with a blank label', { ...own, label: '' }],
    ['of one with a label that an override would split', { ...own, label: 'a:b' }],
  ])('%s', (_name, given) => {
    const body: unknown = JSON.parse(JSON.stringify(given));
    const schema = documentOf().paths['/v1/keys']?.['post']?.requestBody?.content['application/json']?.schema;
    const parsed = registerKeySchema.safeParse(body);
    expect(fits(schema ?? false, body)).toBe(parsed.success && checkProviderKey(parsed.data).ok);
  });
});

const parameter = (path: string, method: string, name: string): Parameter => {
  const found = documentOf().paths[path]?.[method]?.parameters?.find((one) => one.name === name);
  if (found === undefined) throw new Error(`${name} is not described`);
  return found;
};

describe('a parameter', () => {
  const cursor = encodeLogCursor({ createdAtMicros: 5n, id: 7n, sinceMicros: null, requestId: 'r-1' });

  test.each<[name: string, schema: object]>([
    ['since', { type: 'string', format: 'date-time' }],
    ['limit', { type: 'integer', minimum: 1, maximum: 1000 }],
    ['cursor', { type: 'string', maxLength: 256, pattern: '^[A-Za-z0-9_-]+$' }],
  ])('of the logs has its format: %s', (name, schema) => {
    expect(parameter('/v1/logs', 'get', name)).toMatchObject({ in: 'query', schema });
    const taken = { since: '2026-11-20T10:00:00Z', limit: '1000', cursor };
    expect(logsQuerySchema.safeParse(taken).success).toBe(true);
  });

  test('of the logs is described where it is taken', () => {
    expect(fits(parameter('/v1/logs', 'get', 'cursor').schema, cursor)).toBe(true);
    for (const limit of [0, 1, 1000, 1001, 1.5]) {
      const taken = logsQuerySchema.safeParse({ limit: String(limit) }).success;
      expect(fits(parameter('/v1/logs', 'get', 'limit').schema, limit), String(limit)).toBe(taken);
    }
  });

  test('of the statistics that is a list is written with commas', () => {
    const { schema, ...rest } = parameter('/v1/stats', 'get', 'group_by');
    expect(rest).toMatchObject({ in: 'query', style: 'form', explode: false });
    for (const list of [['mode'], ['day', 'mode'], ['mode', 'mode'], ['other'], []]) {
      const taken = statsQuerySchema.safeParse({ group_by: list.join(',') }).success;
      expect(fits(schema, list), list.join(',')).toBe(taken);
    }
  });

  test.each(['since', 'until'])('of the statistics that is an instant has its format: %s', (name) => {
    expect(parameter('/v1/stats', 'get', name).schema).toMatchObject({ type: 'string', format: 'date-time' });
  });
});

describe('a header', () => {
  test.each<[name: keyof typeof gatewayHeaders, values: readonly (string | number | boolean)[]]>([
    ['cache', [true, false]],
    ['cache-ttl', [60, 86_400, 5, 1_000_000]],
    ['timeout', [1, 300, 0, 1000]],
    ['residency', ['india']],
    ['override-model', ['openai:gpt', 'openai:a:b', 'self_hosted/my box:m', `sarvam:${'x'.repeat(256)}`]],
  ])('%s is taken as it is described', (name, values) => {
    const { schema } = parameter('/v1/chat/completions', 'post', gatewayHeaders[name].name);
    for (const value of values) {
      expect(fits(schema, value), String(value)).toBe(true);
      const headers = { [gatewayHeaders[name].lowerName]: String(value) };
      expect(() => readGatewayHeaders({ headers, rawHeaders: [] }, null)).not.toThrow();
    }
  });

  test.each<[name: keyof typeof gatewayHeaders, values: readonly unknown[]]>([
    ['cache-ttl', ['soon', 1.5]],
    ['timeout', ['1s', 1.5]],
    ['residency', ['global', '']],
    [
      'override-model',
      ['gpt', 'other:m', ':m', 'openai:', 'openai/x:m', 'self_hosted/:m', `openai:${'x'.repeat(257)}`],
    ],
  ])('%s that is refused is not described', (name, values) => {
    const { schema } = parameter('/v1/chat/completions', 'post', gatewayHeaders[name].name);
    for (const value of values) {
      expect(fits(schema, value), String(value)).toBe(false);
      const headers = { [gatewayHeaders[name].lowerName]: String(value) };
      expect(() => readGatewayHeaders({ headers, rawHeaders: [] }, null)).toThrow();
    }
  });

  test('of the request id has its pattern', () => {
    const { schema } = parameter('/v1/chat/completions', 'post', 'X-Request-ID');
    for (const [value, isFit] of [
      ['a-b_1', true],
      ['x'.repeat(129), false],
      ['a b', false],
      ['', false],
    ] as const)
      expect(fits(schema, value), value).toBe(isFit);
  });
});

test('the description is made when the tables say something else, not for each who asks', () => {
  let facts: ApiFacts = { chat, hasStore: true, registration: 'open', hasAdminApi: false };
  const described = describedApi('0.1.0', () => facts);
  const before = described();

  expect(described()).toBe(before);
  facts = { ...facts };
  expect(described()).toBe(before);
  facts = { ...facts, chat: { ...chat, developer_role: true } };
  expect(described()).not.toEqual(before);
  expect(described()).toEqual(openApiDocument('0.1.0', facts));
});
