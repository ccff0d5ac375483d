/** SPEC 4.2 to 4.4 and 2.2: registering, listing and deleting provider keys. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { answeredInTime } from '../harness/gateway/answered-in-time.ts';
import { chat } from '../harness/gateway/chat.ts';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { addKey, registerUser } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import type { KeyRecord } from '../harness/vendors/wire-types.ts';
import { microsecondsPattern, uuidPattern } from '../harness/vendors/wire-types.ts';
import baseUrls from './base-urls.json' with { type: 'json' };

const gateway = useGateway();
const user = useUser(gateway, []);

const selfHosted = (additions: Record<string, unknown> = {}) => ({
  provider: 'self_hosted',
  api_key: 'placeholder',
  base_url: 'https://models.example.com/v1',
  declared_region: 'eu-west-1',
  ...additions,
});
const list = async (owner: User) => (await owner.client.get('/v1/keys')).json<KeyRecord[]>();

describe('a provider key record', () => {
  test.each([
    ['openai', 'global'],
    ['anthropic', 'global'],
    ['together', 'global'],
    ['sarvam', 'india'],
  ])('of %s has residency %s and no region or address', async (provider, residency) => {
    const owner = await registerUser(gateway.url);
    const response = await owner.client.post('/v1/keys', { provider, api_key: 'sk-secret', label: 'mine' });
    expect(response.status, response.text).toBe(201);
    const record = response.json<KeyRecord>();
    expect(Object.keys(record).sort()).toEqual([
      'base_url',
      'created_at',
      'declared_region',
      'id',
      'label',
      'provider',
      'residency',
    ]);
    expect(record).toMatchObject({
      provider,
      residency,
      declared_region: null,
      base_url: null,
      label: 'mine',
    });
    expect(record.id).toMatch(uuidPattern);
    expect(record.created_at).toMatch(microsecondsPattern);
    expect(Math.abs(Date.parse(record.created_at) - Date.now())).toBeLessThan(60_000);
  });

  test.each([
    ['in', 'india'],
    ['India', 'india'],
    ['ap-south-1', 'india'],
    ['AP-SOUTH-2', 'india'],
    ['asia-south1', 'india'],
    ['centralindia', 'india'],
    ['us-east-1', 'global'],
    ['indiana', 'global'],
    ['ap-south-10', 'global'],
  ])('of a self_hosted endpoint in %s has residency %s', async (region, residency) => {
    const record = await addKey(user, selfHosted({ declared_region: region }));
    expect(record).toMatchObject({
      provider: 'self_hosted',
      residency,
      declared_region: region,
      base_url: 'https://models.example.com/v1',
      label: null,
    });
  });

  test('never holds the secret, nor does any list of them', async () => {
    const owner = await registerUser(gateway.url);
    const secret = `sk-canary-${randomUUID()}`;
    const created = await owner.client.post('/v1/keys', { provider: 'openai', api_key: secret });
    expect(created.text).not.toContain(secret);
    expect((await owner.client.get('/v1/keys')).text).not.toContain(secret);
    const again = await owner.client.post('/v1/keys', { provider: 'openai', api_key: secret });
    expect(again.text).not.toContain(secret);
    expect(gateway.output()).not.toContain(secret);
  });

  test.each(['openai', 'anthropic', 'together', 'sarvam'])(
    'of %s is unique for its user',
    async (provider) => {
      const owner = await registerUser(gateway.url);
      await addKey(owner, { provider, api_key: 'one' });
      const response = await owner.client.post('/v1/keys', { provider, api_key: 'two' });
      expectError(response, { status: 409, type: 'conflict_error' });
      expect(response.headers['x-should-retry']).toBe('false');
      expect(await list(owner)).toHaveLength(1);
    },
  );

  test('of one provider is made once by 50 parallel requests', async () => {
    const owner = await registerUser(gateway.url);
    const answers = await Promise.all(
      Array.from({ length: 50 }, () =>
        answeredInTime(() => owner.client.post('/v1/keys', { provider: 'openai', api_key: 'x' })),
      ),
    );
    const statuses = answers.map((answer) => answer.status);
    const made = statuses.filter((status) => status === 201).length;
    // Whoever made it may have been answered too late to know: asked again, it is there.
    const wasLate = answers.some(({ asked }) => asked > 1);
    expect(made, String(statuses)).toBe(wasLate ? Math.min(made, 1) : 1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(50 - made);
    expect(await list(owner)).toHaveLength(1);
  });

  test('of the same provider may be held by two users', async () => {
    const [first, second] = [await registerUser(gateway.url), await registerUser(gateway.url)];
    await addKey(first, { provider: 'openai', api_key: 'same' });
    await addKey(second, { provider: 'openai', api_key: 'same' });
  });

  test('of self_hosted may be held several times, at most 100', async () => {
    const owner = await registerUser(gateway.url);
    for (let batch = 0; batch < 10; batch += 1)
      await Promise.all(
        Array.from({ length: 10 }, (_, index) => addKey(owner, selfHosted({ label: `n${batch}${index}` }))),
      );
    expectInvalid(await owner.client.post('/v1/keys', selfHosted()));
    expect(await list(owner)).toHaveLength(100);
  });
});

describe('the body of POST /v1/keys', () => {
  test.each([
    ['an unknown provider', { provider: 'nobody', api_key: 'k' }, 'provider'],
    ['a provider in capitals', { provider: 'OpenAI', api_key: 'k' }, 'provider'],
    ['a provider named like an object method', { provider: 'constructor', api_key: 'k' }, 'provider'],
    ['no provider', { api_key: 'k' }, 'provider'],
    ['a null provider', { provider: null, api_key: 'k' }, 'provider'],
    ['no api_key', { provider: 'openai' }, 'api_key'],
    ['an empty api_key', { provider: 'openai', api_key: '' }, 'api_key'],
    ['a numeric api_key', { provider: 'openai', api_key: 42 }, 'api_key'],
    ['an api_key with a line break', { provider: 'openai', api_key: 'a\r\nx-evil: 1' }, 'api_key'],
    ['an api_key with a NUL', { provider: 'openai', api_key: 'a\u0000b' }, 'api_key'],
    ['base_url on openai', { provider: 'openai', api_key: 'k', base_url: 'https://a.example' }, 'base_url'],
    ['base_url on sarvam', { provider: 'sarvam', api_key: 'k', base_url: 'https://a.example' }, 'base_url'],
    [
      'declared_region on openai',
      { provider: 'openai', api_key: 'k', declared_region: 'in' },
      'declared_region',
    ],
    ['self_hosted without base_url', selfHosted({ base_url: undefined }), 'base_url'],
    ['self_hosted without declared_region', selfHosted({ declared_region: undefined }), 'declared_region'],
    ['self_hosted with an empty declared_region', selfHosted({ declared_region: '' }), 'declared_region'],
    ['self_hosted with a numeric base_url', selfHosted({ base_url: 42 }), 'base_url'],
    ['a label of 129 characters', { provider: 'openai', api_key: 'k', label: 'x'.repeat(129) }, 'label'],
    ['a label of 129 code points', { provider: 'openai', api_key: 'k', label: '😀'.repeat(129) }, 'label'],
    ['a label with a NUL', { provider: 'openai', api_key: 'k', label: 'a\u0000' }, 'label'],
    ['a label with a lone surrogate', { provider: 'openai', api_key: 'k', label: 'a\udc00' }, 'label'],
    ['a region with a NUL', selfHosted({ declared_region: 'in\u0000' }), 'declared_region'],
    ['a label with a slash on self_hosted', selfHosted({ label: 'a/b' }), 'label'],
    ['a label with a colon on self_hosted', selfHosted({ label: 'a:b' }), 'label'],
    ['a blank label on self_hosted', selfHosted({ label: ' ' }), 'label'],
    ['a numeric label', { provider: 'openai', api_key: 'k', label: 1 }, 'label'],
  ])('is refused with 422: %s', async (_name, body, param) => {
    const owner = await registerUser(gateway.url);
    expectInvalid(await owner.client.post('/v1/keys', body), param);
    expect(await list(owner)).toEqual([]);
  });

  test.each([
    ['128 characters', 'x'.repeat(128)],
    ['128 code points beyond the basic plane', '😀'.repeat(128)],
    ['SQL', "'; DROP TABLE provider_keys; --"],
    ['nothing', ''],
    ['U+2028', 'a\u2028b'],
    ['what overrides are split at', 'a/b:c'],
  ])('accepts a label of %s and gives it back', async (_name, label) => {
    const owner = await registerUser(gateway.url);
    expect((await addKey(owner, { provider: 'openai', api_key: 'k', label })).label).toBe(label);
    expect((await list(owner))[0]?.label).toBe(label);
  });

  test.each(baseUrls.filter((row) => row.accepted))('accepts base_url $url', async ({ url }) => {
    const record = await addKey(await registerUser(gateway.url), selfHosted({ base_url: url }));
    expect(record.base_url).toBeTypeOf('string');
  });

  test.each(baseUrls.filter((row) => !row.accepted))('refuses base_url $url', async (row) => {
    const owner = await registerUser(gateway.url);
    const response = await owner.client.post('/v1/keys', selfHosted({ base_url: row.url }));
    if (row.alsoAccepted === true && response.status === 201) return;
    expectInvalid(response, 'base_url');
  });
});

describe('GET /v1/keys', () => {
  test('lists the caller’s records, oldest first, and nobody else’s', async () => {
    const [owner, other] = [await registerUser(gateway.url), await registerUser(gateway.url)];
    const made = [
      await addKey(owner, { provider: 'sarvam', api_key: 'k' }),
      await addKey(owner, { provider: 'openai', api_key: 'k' }),
      await addKey(owner, selfHosted({ label: 'box' })),
    ];
    await addKey(other, { provider: 'openai', api_key: 'k' });
    const response = await owner.client.get('/v1/keys');
    expect(response.status).toBe(200);
    expect(response.headers['cache-control']).toMatch(/no-store/);
    expect(response.json<KeyRecord[]>()).toEqual(made);
  });

  test('is an empty array for a new user', async () => {
    expect(await list(await registerUser(gateway.url))).toEqual([]);
  });

  test.each(['GET', 'POST'])('and its sibling need a service key: %s', async (method) => {
    const response = await httpClient(gateway.url).request(method, '/v1/keys', {
      ...(method === 'POST' ? { body: { provider: 'nonsense' } } : {}),
    });
    expectError(response, { status: 401, type: 'authentication_error' });
  });
});

describe('DELETE /v1/keys/{id}', () => {
  test('answers 204 with an empty body, and 404 from then on', async () => {
    const owner = await registerUser(gateway.url);
    const { id } = await addKey(owner, { provider: 'openai', api_key: 'k' });
    const response = await owner.client.delete(`/v1/keys/${id}`);
    expect(response.status).toBe(204);
    expect(response.text).toBe('');
    expect(response.headers['x-request-id']).toBeTypeOf('string');
    expect(await list(owner)).toEqual([]);
    expectError(await owner.client.delete(`/v1/keys/${id}`), { status: 404, type: 'not_found_error' });
  });

  test('makes room for a new key of the same provider', async () => {
    const owner = await registerUser(gateway.url);
    const { id } = await addKey(owner, { provider: 'openai', api_key: 'k' });
    await owner.client.delete(`/v1/keys/${id}`);
    expect((await addKey(owner, { provider: 'openai', api_key: 'k2' })).id).not.toBe(id);
  });

  test('answers another user’s key exactly as one that does not exist', async () => {
    const [owner, thief] = [await registerUser(gateway.url), await registerUser(gateway.url)];
    const { id } = await addKey(owner, { provider: 'openai', api_key: 'k' });
    const foreign = expectError(await thief.client.delete(`/v1/keys/${id}`), {
      status: 404,
      type: 'not_found_error',
    });
    const missing = expectError(await thief.client.delete(`/v1/keys/${randomUUID()}`), {
      status: 404,
      type: 'not_found_error',
    });
    expect({ ...foreign, request_id: '' }).toEqual({ ...missing, request_id: '' });
    expect(await list(owner)).toHaveLength(1);
  });

  test.each([
    'not-a-uuid',
    '1',
    '%00',
    '%7B00000000-0000-0000-0000-000000000000%7D',
    "'%20OR%201=1--",
    '9'.repeat(400),
    '00000000-0000-0000-0000-00000000000g',
  ])('answers 404 for the id %s', async (id) => {
    expectError(await user.client.delete(`/v1/keys/${id}`), { status: 404, type: 'not_found_error' });
  });

  test('is felt by the next chat request', async () => {
    const owner = await registerUser(gateway.url);
    const { id } = await addKey(owner, { provider: 'openai', api_key: 'k' });
    expect((await chat(owner.client)).status).toBe(200);
    await owner.client.delete(`/v1/keys/${id}`);
    expectError(await chat(owner.client), {
      status: 422,
      type: 'invalid_request_error',
      code: 'no_provider_key',
    });
  });

  test('needs a service key', async () => {
    const response = await httpClient(gateway.url).delete(`/v1/keys/${randomUUID()}`);
    expectError(response, { status: 401, type: 'authentication_error' });
  });
});

describe('a registered key', () => {
  test('serves the very next chat request of its owner', async () => {
    const owner = await registerUser(gateway.url);
    expectError(await chat(owner.client), {
      status: 422,
      type: 'invalid_request_error',
      code: 'no_provider_key',
    });
    await addKey(owner, { provider: 'anthropic', api_key: 'sk-ant-later' });
    const response = await chat(owner.client);
    expect(response.status, response.text).toBe(200);
    expect(gateway.vendors.anthropic.ledger.at(-1)?.headers['x-api-key']).toBe('sk-ant-later');
  });
});
