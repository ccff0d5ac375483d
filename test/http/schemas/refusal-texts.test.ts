/** What a 422 says of a body or a query: true of what was sent, and each field by its name once. */
import { describe, expect, test, vi } from 'vitest';
import {
  newServiceKeySchema,
  registerKeySchema,
  registerUserSchema,
} from '../../../src/core/account/account-requests.ts';
import { checkProviderKey } from '../../../src/core/account/new-provider-key.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { limitNames } from '../../../src/core/limits/limit-table.ts';
import { isMoney } from '../../../src/core/limits/user-limits.ts';
import {
  changeUserSchema,
  spendQuerySchema,
  usersQuerySchema,
} from '../../../src/http/admin/operator-schemas.ts';
import { parseOrThrow } from '../../../src/http/schemas/parse.ts';
import { logsQuerySchema, statsQuerySchema } from '../../../src/http/schemas/query-schemas.ts';

const schemas = {
  user: registerUserSchema,
  key: registerKeySchema,
  logs: logsQuerySchema,
  stats: statsQuerySchema,
  serviceKey: newServiceKeySchema,
  change: changeUserSchema,
  users: usersQuerySchema,
  spend: spendQuerySchema,
};

function refusalOf(schema: keyof typeof schemas, value: unknown): GatewayError {
  try {
    parseOrThrow(schemas[schema], value);
  } catch (error) {
    if (error instanceof GatewayError) return error;
  }
  throw new Error('it was taken');
}

const key = { provider: 'openai', api_key: 'sk-1' } as const;
const own = {
  provider: 'self_hosted',
  api_key: '',
  base_url: 'https://a.example',
  declared_region: 'in',
} as const;
const isMissing = 'is missing';
const counted = 'must be a whole number from 1 to 1000000000, null or "default"';
const dollars = 'must be dollars above 0 such as "2.50", with at most six decimal places, null or "default"';
const integer = 'must be an integer';
const range = 'must be between 1 and 1000';
const once = 'must be sent once';
const instant = 'must be an ISO 8601 timestamp with a time zone';
const cursor = 'must be the next_cursor of another page';
const groups = 'must be a list without repeats of provider, model, mode, day';

type Row = [schema: keyof typeof schemas, value: object, param: string, text: string];

describe('a refusal', () => {
  test.each<Row>([
    ...['-1', '0', '1001', '-0', '99999999999999999999', '9'.repeat(400)].map(
      (limit): Row => ['logs', { limit }, 'limit', range],
    ),
    ...['', 'abc', '1.5', '1e2', '0x10', '--1', 'NaN', ' 1'].map(
      (limit): Row => ['logs', { limit }, 'limit', integer],
    ),
    ['logs', { limit: ['1', '2'] }, 'limit', once],
    ['logs', { cursor: ['a', 'b'] }, 'cursor', once],
    ['logs', { since: ['a', 'b'] }, 'since', once],
    ['stats', { group_by: ['mode', 'day'] }, 'group_by', once],
    ...['', 'x', 'MTIz', 'A'.repeat(10_240)].map((text): Row => ['logs', { cursor: text }, 'cursor', cursor]),
    ['logs', { since: 'yesterday' }, 'since', instant],
    ['stats', { until: '2026-11-20' }, 'until', instant],
    ['stats', { group_by: 'mode,mode' }, 'group_by', groups],
    ['user', { email: 'a' }, 'email', 'must be a valid e-mail address'],
    ['key', { ...key, label: 'x'.repeat(129) }, 'label', 'may have at most 128 characters'],
    ['key', { ...key, label: 'a\nb' }, 'label', 'holds characters that are not allowed'],
    [
      'key',
      { ...own, declared_region: 'x'.repeat(129) },
      'declared_region',
      'may have at most 128 characters',
    ],
    ['key', { ...own, declared_region: ' ' }, 'declared_region', 'must not be empty'],
    ['key', { ...key, api_key: '' }, 'api_key', 'must not be empty'],
    ['serviceKey', { expires_at: 'soon' }, 'expires_at', instant],
    ['users', { limit: '0' }, 'limit', range],
    ['users', { cursor: 'first' }, 'cursor', cursor],
    ['spend', {}, 'from', isMissing],
    ['spend', { to: '2026-01-01T00:00:00Z' }, 'from', isMissing],
    ['spend', { from: ['a', 'b'] }, 'from', once],
    ['spend', { from: 'May' }, 'from', instant],
    ['change', { residency: 'mars' }, 'residency', 'must be "india" or null'],
    ...limitNames.flatMap((name) =>
      [0, -1, 2e9, 1e-7, 'none', '$5', '', true, [], {}].map(
        (limit): Row => [
          'change',
          { limits: { [name]: limit } },
          `limits.${name}`,
          isMoney(name) ? dollars : counted,
        ],
      ),
    ),
    ['change', { limits: { requests_per_minute: 1.5 } }, 'limits.requests_per_minute', counted],
    ['change', { limits: { streams: '60' } }, 'limits.streams', counted],
  ])('of %s %j names %s: %s', (schema, value, param, text) => {
    expect(refusalOf(schema, value)).toMatchObject({ status: 422, param, message: `${param}: ${text}` });
  });

  test('of a list of groups is made by its first entries, however many there are', () => {
    const split = vi.spyOn(String.prototype, 'split');
    const { message } = refusalOf('stats', { group_by: ','.repeat(16_000) });
    const lists = split.mock.results.map(({ value }) => (value as string[]).length);
    split.mockRestore();
    expect(message).toBe(`group_by: ${groups}`);
    expect(lists).toEqual([5]);
  });

  test.each(Object.keys(schemas) as (keyof typeof schemas)[])(
    'of %s that is no JSON object has one code on every route',
    (schema) => {
      for (const value of [undefined, null, [], 'text', 7])
        expect(refusalOf(schema, value)).toMatchObject({
          param: null,
          code: 'invalid_json',
          message: 'The body must be a JSON object.',
        });
    },
  );

  test.each<[field: string, body: object]>([
    ['label', { ...own, label: 'a/b' }],
    ['label', { ...own, label: ' ' }],
    ['base_url', { ...key, base_url: 'https://a.example' }],
    ['declared_region', { ...key, declared_region: 'in' }],
    ['base_url', { ...own, base_url: undefined }],
    ['declared_region', { ...own, declared_region: undefined }],
    ['base_url', { ...own, base_url: 'http://a.example' }],
  ])('of %s that does not go with its provider leaves its name to who shows it', (field, body) => {
    const checked = checkProviderKey(parseOrThrow(registerKeySchema, body));
    if (checked.ok) throw new Error('it was taken');
    expect(checked.field).toBe(field);
    expect(checked.message).not.toContain(field);
    expect(checked.message).toMatch(/^(must|may|is) .*\.$/);
  });
});
