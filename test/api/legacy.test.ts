/** SPEC 9.2, 4.5 header rule 1 and 5.4: the surface from before the rename, until its sunset and after. */
import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { chat, chatOk } from '../harness/gateway/chat.ts';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { tables } from '../harness/gateway/tables.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { startVendorPack } from '../harness/vendors/vendor-pack.ts';
import { hang } from '../harness/vendors/vendor-plans.ts';
import { scrape } from '../telemetry/exercised-gateway.ts';
import { sumOf } from '../telemetry/exposition.ts';

const name = 'oldname';
const future = '2999-01-01T00:00:00Z';

/** A service key from before the rename exists only as a hash in the database. */
async function legacyKeyOf(gateway: GatewayUnderTest, user: User): Promise<string> {
  const key = `${name}_${randomBytes(24).toString('base64url')}`;
  const client = new pg.Client({ connectionString: gateway.database.url });
  await client.connect();
  try {
    await client.query('INSERT INTO service_keys (key_hash, user_id) VALUES ($1, $2)', [
      createHash('sha256').update(key).digest(),
      user.id,
    ]);
  } finally {
    await client.end();
  }
  return key;
}

const vendors = useServer(startVendorPack);

describe('before the sunset', () => {
  const gateway = useGateway({ vendors, tables: tables({ legacy: { name, sunset: future } }) });
  const user = useUser(gateway);

  const expectMarked = (headers: Readonly<Record<string, unknown>>) => {
    expect(headers['deprecation']).toBeTypeOf('string');
    expect(Date.parse(String(headers['sunset']))).toBe(Date.parse(future));
  };

  test('a key with the old prefix opens the door, and is told so', async () => {
    const client = httpClient(gateway.url, await legacyKeyOf(gateway, user));
    const response = await client.get('/v1/keys');
    expect(response.status, response.text).toBe(200);
    expectMarked(response.headers);
    expect((await chat(client)).status).toBe(200);
  });

  test('a wrong key with the old prefix does not', async () => {
    const client = httpClient(gateway.url, `${name}_${randomBytes(24).toString('base64url')}`);
    expectError(await client.get('/v1/keys'), { status: 401, type: 'authentication_error' });
  });

  test.each(['cheap', 'balanced', 'premium'])('the old mode name of %s is accepted', async (tier) => {
    const response = await chat(user.client, { model: `${name}/${tier}` });
    expect(response.status, response.text).toBe(200);
    expect(response.json<object>()).toMatchObject({ gateway: { mode: `gw/${tier}` } });
    expectMarked(response.headers);
  });

  test.each(['cheap', 'balanced', 'premium'])('the old mode name of %s is found as a model', async (tier) => {
    for (const path of [`${name}%2F${tier}`, `${name}/${tier}`]) {
      const response = await user.client.get(`/v1/models/${path}`);
      expect(response.status, response.text).toBe(200);
      expect(response.json<object>()).toMatchObject({ id: `gw/${tier}`, object: 'model' });
      expectMarked(response.headers);
    }
    const current = await user.client.get(`/v1/models/gw%2F${tier}`);
    expect(current.headers['deprecation']).toBeUndefined();
    expect((await user.client.get('/v1/models/othername%2Fcheap')).status).toBe(404);
  });

  test('an unknown old mode name is not', async () => {
    expectInvalid(await chat(user.client, { model: `${name}/fast` }), 'model');
    expectInvalid(await chat(user.client, { model: 'othername/balanced' }), 'model');
  });

  test.each([
    [`x-${name}-residency`, 'india'],
    [`X-Oldname-Residency`, 'india'],
  ])('the old header %s is read', async (header, value) => {
    const response = await chat(user.client, {}, { [header]: value });
    expect(response.json<object>()).toMatchObject({ gateway: { provider: 'sarvam' } });
    expectMarked(response.headers);
  });

  test('each old header is read as a fallback', async () => {
    const override = await chatOk(user.client, {}, { [`x-${name}-override-model`]: 'together:tog/test' });
    expect(override.gateway.provider).toBe('together');
    expectInvalid(await chat(user.client, {}, { [`x-${name}-cache-ttl`]: 'abc' }), /ttl/i);
    const cached = { [`x-${name}-cache`]: 'true' };
    const messages = [{ role: 'user', content: 'legacy cache' }];
    await chatOk(user.client, { messages }, cached);
    expect((await chatOk(user.client, { messages }, cached)).gateway.cache_hit).toBe(true);
    vendors.openai.script(hang);
    const timed = await chatOk(user.client, {}, { [`x-${name}-timeout`]: '1' });
    expect(timed.gateway.provider).toBe('sarvam');
  });

  test.each<
    [surface: string, request: Record<string, unknown>, headers: Record<string, string>, param: string]
  >([
    ['a wrong TTL', {}, { [`x-${name}-cache-ttl`]: 'abc' }, `x-${name}-cache-ttl`],
    ['a wrong residency', {}, { [`X-Oldname-Residency`]: 'moon' }, `x-${name}-residency`],
    ['a wrong timeout', {}, { [`x-${name}-timeout`]: 'never' }, `x-${name}-timeout`],
    ['a wrong override', {}, { [`x-${name}-override-model`]: 'nobody:m' }, `x-${name}-override-model`],
    ['a wrong body beside an old header', { n: 0 }, { [`x-${name}-cache`]: 'true' }, 'n'],
    ['an unknown mode beside one', { model: 'gw/fast' }, { [`x-${name}-cache`]: 'true' }, 'model'],
    ['a wrong new header', { model: `${name}/cheap` }, { 'x-gateway-timeout': 'abc' }, 'X-Gateway-Timeout'],
  ])(
    '%s is refused by the name it was sent with, and told of the end',
    async (_name, request, headers, param) => {
      const response = await chat(user.client, request, headers);
      expectInvalid(response, param);
      expectMarked(response.headers);
    },
  );

  test('the new header wins over the old one, whatever the old one says', async () => {
    const body = await chatOk(
      user.client,
      {},
      {
        'x-gateway-override-model': 'together:tog/test',
        [`x-${name}-override-model`]: 'sarvam:sarvam-test',
        'x-gateway-cache-ttl': '60',
        [`x-${name}-cache-ttl`]: 'abc',
      },
    );
    expect(body.gateway.provider).toBe('together');
    expectInvalid(
      await chat(user.client, {}, { 'x-gateway-cache-ttl': 'abc', [`x-${name}-cache-ttl`]: '60' }),
      /ttl/i,
    );
  });

  test('each use is counted by where it was', async () => {
    const used = async () => {
      const exposition = await scrape(gateway);
      return ['key', 'mode', 'header'].map((surface) =>
        sumOf(exposition, 'gw_legacy_use_total', { surface }),
      );
    };
    const [key = 0, mode = 0, header = 0] = await used();
    const old = httpClient(gateway.url, await legacyKeyOf(gateway, user));
    await chatOk(old, { model: `${name}/cheap` }, { [`x-${name}-cache`]: 'true' });
    await chatOk(user.client);
    expect(await used()).toEqual([key + 1, mode + 1, header + 1]);
  });

  test('a request of the new surface is not marked', async () => {
    const response = await chat(user.client);
    expect(response.headers).not.toHaveProperty('deprecation');
    expect(response.headers).not.toHaveProperty('sunset');
  });

  test('new keys carry the new prefix', async () => {
    expect(user.key).toMatch(/^gw_/);
  });

  test('the metadata block has no alias under the old name', async () => {
    const body = await chatOk(user.client, { model: `${name}/balanced` });
    expect(body).not.toHaveProperty(name);
  });
});

describe.each([
  ['after the sunset', { legacy: { name, sunset: '2026-07-23T00:00:00Z' } }, true],
  ['after the default sunset', { legacy: { name } }, true],
  ['without a legacy surface', {}, false],
])('%s', (_title, overrides, ended) => {
  const gateway = useGateway({ vendors, tables: tables(overrides) });
  const user = useUser(gateway);

  test('an old key answers 401', async () => {
    const client = httpClient(gateway.url, await legacyKeyOf(gateway, user));
    expectError(await client.get('/v1/keys'), { status: 401, type: 'authentication_error' });
  });

  test('an old mode name answers 422', async () => {
    expectInvalid(await chat(user.client, { model: `${name}/balanced` }), 'model');
  });

  test('old headers are ignored, even wrong ones', async () => {
    const body = await chatOk(
      user.client,
      {},
      { [`x-${name}-cache-ttl`]: 'abc', [`x-${name}-cache`]: 'true', [`x-${name}-timeout`]: 'never' },
    );
    expect(body.gateway).toMatchObject({ provider: 'openai', mode: 'gw/balanced' });
  });

  test.each([
    ['residency', 'india', 'X-Gateway-Residency'],
    ['override-model', 'sarvam:sarvam-test', 'X-Gateway-Override-Model'],
  ])('an old %s header is not ignored where its name is known', async (header, value, current) => {
    const response = await chat(user.client, {}, { [`x-${name}-${header}`]: value });
    if (!ended) {
      expect(response.status).toBe(200);
      return;
    }
    expectInvalid(response, current);
    expect(vendors.ledger()).toEqual([]);
    const both = await chat(user.client, {}, { [`x-${name}-${header}`]: 'india', [current]: value });
    expect(both.json<object>()).toMatchObject({ gateway: { provider: 'sarvam' } });
  });
});
