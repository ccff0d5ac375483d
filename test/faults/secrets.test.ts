/** Canary secrets are searched for in everything the gateway writes, while vendors do their best to spread them. */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { beforeAll, expect, test } from 'vitest';
import { chat, chatBody, chatPath, streamed } from '../harness/gateway/chat.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { addKey } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { metric, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import { sql } from '../harness/servers/fault-postgres.ts';
import { startRedis } from '../harness/servers/redis.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import { vendorNames } from '../harness/vendors/vendor-pack.ts';
import { answer, respond, streamOf } from '../harness/vendors/vendor-plans.ts';
import type { ReceivedRequest, Script } from '../harness/vendors/vendor-reply.ts';

/** Looks like no known credential, so that nothing but the secret itself can give it away, and escapes badly. */
function canary(name: string): string {
  return `${name}/"${randomBytes(12).toString('hex')}"+${randomBytes(6).toString('hex')}=`;
}

/** Base64 of a text that may stand anywhere in what was encoded: the digits that do not depend on neighbours. */
function base64Anywhere(text: string): string[] {
  return [0, 1, 2].map((shift) => {
    const encoded = Buffer.from(' '.repeat(shift) + text)
      .toString('base64')
      .replace(/=+$/, '');
    return encoded.slice(shift === 0 ? 0 : shift + 1, -2);
  });
}

/** Every form in which a secret might lie somewhere. */
function formsOf(secret: string): string[] {
  const base64 = base64Anywhere(secret);
  return [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1),
    Buffer.from(secret).toString('hex'),
    ...base64,
    ...base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_')),
  ];
}

function hits(where: string, text: string, secrets: Readonly<Record<string, string>>): string[] {
  const lower = text.toLowerCase();
  return Object.entries(secrets).flatMap(([name, secret]) =>
    formsOf(secret)
      .filter((form) => text.includes(form) || lower.includes(form.toLowerCase()))
      .map((form) => `${name} in ${where} as ${form}`),
  );
}

const sealingKey = randomBytes(32).toString('base64');
const secrets: Record<string, string> = { 'sealing key': sealingKey };
/** Everything that clients were answered, but for the registration itself. */
const bodies: string[] = [];

const redis = useServer(startRedis);
const gateway = useGateway(() => ({
  redisUrl: redis.url,
  env: { GW_LOG_LEVEL: 'trace', GW_SEALING_KEYS: `k1:${sealingKey}` },
}));
const user = useUser(gateway, []);

beforeAll(async () => {
  secrets['service key'] = user.key;
  for (const provider of vendorNames) {
    secrets[provider] = canary(provider);
    await addKey(user, { provider, api_key: secrets[provider] });
  }
});

/** The key as the vendor received it. */
function keyOf(request: ReceivedRequest): string {
  return String(
    request.headers['x-api-key'] ?? String(request.headers['authorization']).slice('Bearer '.length),
  );
}

function echo(status: number, write: (key: string) => string, type = 'application/json'): Script {
  return (request) => respond(status, write(keyOf(request)), { 'content-type': type })(request);
}

const asError = (text: string) =>
  JSON.stringify({ error: { message: text, type: text, code: text, param: text } });
const echoes: [name: string, script: Script][] = [
  ['in an error message', echo(401, (key) => asError(`Incorrect API key provided: ${key}.`))],
  ['with the whole header', echo(400, (key) => asError(`Authorization: Bearer ${key}; x-api-key: ${key}`))],
  ['twice, escaped', echo(500, (key) => asError(`${encodeURIComponent(key)} ${JSON.stringify(key)}`))],
  ['at the end of a long text', echo(429, (key) => asError('x'.repeat(480) + key))],
  ['in HTML', echo(502, (key) => `<html>${key}</html>`, 'text/html')],
  ['as plain text', echo(503, (key) => key, 'text/plain')],
  ['in a 200 that is an error', echo(200, (key) => asError(key))],
  [
    'in headers',
    (request) => respond(500, '{}', { 'retry-after': keyOf(request), 'x-key': keyOf(request) })(request),
  ],
  [
    'in a redirect',
    (request) =>
      respond(307, '', { location: `http://127.0.0.1:9/?key=${encodeURIComponent(keyOf(request))}` })(
        request,
      ),
  ],
  ['in a first event', (request) => streamOf([sse({ error: { message: keyOf(request) } })])(request)],
];

test.each(echoes)('a vendor that echoes the key %s tells nobody of a tier request', async (_name, script) => {
  gateway.vendors.clear();
  gateway.vendors.always(script);
  for (const model of ['gw/cheap', 'gw/balanced', 'gw/premium']) {
    for (const stream of [false, true]) {
      const response = await chat(user.client, { model, stream });
      expect(response.status).toBeGreaterThanOrEqual(400);
      bodies.push(response.text, JSON.stringify(response.headers));
    }
  }
  expect(bodies.flatMap((body) => hits('an answer', body, secrets))).toEqual([]);
});

test('a vendor that echoes the key in the middle of a stream tells nobody', async () => {
  gateway.vendors.clear();
  gateway.vendors.always((request) =>
    streamOf([
      sse(openAiChunk('gpt-test', { content: 'so far so good' })),
      sse({ error: { message: `bad key ${keyOf(request)}`, type: keyOf(request) } }),
    ])(request),
  );
  const stream = await streamed(user.client);
  expect(stream.error).not.toBeNull();
  bodies.push(stream.data.join('\n'));
  expect(hits('an error event', stream.data.join('\n'), secrets)).toEqual([]);
});

test('an override passes its error on without the key', async () => {
  gateway.vendors.clear();
  gateway.vendors.always((request) => {
    const key = keyOf(request);
    const headers = {
      'content-type': `application/json; key=${key}`,
      'retry-after': key,
      'x-should-retry': key,
    };
    return respond(401, asError(`Incorrect API key provided: ${key}.`), headers)(request);
  });
  const response = await chat(user.client, {}, { 'x-gateway-override-model': 'openai:gpt-test' });
  bodies.push(response.text);
  expect(response.text).toContain('Incorrect API key provided: [redacted].');
  const said = `${JSON.stringify(response.headers)}\n${response.text}`;
  expect(hits('an error passed on', said, secrets)).toEqual([]);
});

test('requests that are refused are not quoted', async () => {
  const { client } = user;
  const secret = secrets['openai'] ?? '';
  const refused = await Promise.all([
    client.post('/v1/keys', { provider: 'openai', api_key: secret }),
    client.post('/v1/keys', { provider: 'nobody', api_key: secret }),
    client.post('/v1/keys', { provider: 'openai', api_key: secret, base_url: 'https://example.com' }),
    client.post('/v1/keys', {
      provider: 'self_hosted',
      api_key: secret,
      base_url: 'http://example.com',
      declared_region: 'in',
    }),
    client.post('/v1/keys', { provider: 'openai', api_key: `${secret}\n` }),
    client.post('/v1/keys', { provider: 'openai', api_key: [secret] }),
    client.post('/v1/keys', `{"provider":"openai","api_key":"${secret}" oops`),
    client.post(chatPath, `{"model":"gw/balanced","messages":[${secret}`),
    httpClient(gateway.url, `${user.key}x`).get('/v1/keys'),
    httpClient(gateway.url).get('/v1/keys', { authorization: `Basic ${user.key}` }),
    httpClient(gateway.url).get(`/v1/nowhere?key=${user.key}`),
    client.get('/v1/keys'),
  ]);
  for (const response of refused) bodies.push(response.text, JSON.stringify(response.headers));
  expect(bodies.flatMap((body) => hits('an answer', body, secrets))).toEqual([]);
});

test('an answer that holds a key is cached sealed', async () => {
  gateway.vendors.clear();
  gateway.vendors.always((request) => answer({ text: [`Your key is ${keyOf(request)}`] })(request));
  const ask = () => chat(user.client, {}, { 'x-gateway-cache': 'true' });
  await eventually(
    async () => (await ask()).json<{ gateway: { cache_hit: boolean } }>().gateway.cache_hit || undefined,
  );
});

/** All rows of all tables, as text. */
async function postgresDump(): Promise<string> {
  const { url } = gateway.database;
  const names = await sql<{ name: string }>(
    url,
    "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public'",
  );
  const dumps = names.map(({ name }) => sql<{ line: string }>(url, `SELECT t::text AS line FROM ${name} t`));
  const lines = (await Promise.all(dumps)).flat().map((row) => row.line);
  expect(lines.length).toBeGreaterThan(60);
  return lines.join('\n');
}

/** Text columns hold escapes; what a bytea column holds is shown as it is, too. */
async function postgresBytes(): Promise<string> {
  const rows = await sql<{ nonce: Buffer; ciphertext: Buffer }>(
    gateway.database.url,
    'SELECT nonce, ciphertext FROM provider_keys',
  );
  return rows.map((row) => Buffer.concat([row.nonce, row.ciphertext]).toString('latin1')).join('\n');
}

/** All keys and values, byte by byte. */
async function redisDump(): Promise<string> {
  const client = new Redis(redis.url);
  try {
    const names = await client.keys('*');
    expect(names).not.toEqual([]);
    const values = await Promise.all(
      names.map(async (name) => {
        const isHash = (await client.type(name)) === 'hash';
        return isHash
          ? JSON.stringify(await client.hgetall(name))
          : (await client.getBuffer(name))?.toString('latin1');
      }),
    );
    return [...names, ...values].join('\n');
  } finally {
    client.disconnect();
  }
}

test('after all that, no secret lies in the output, the metrics, Postgres or Redis', async () => {
  await chat(user.client, chatBody());
  await untilRowsStored(gateway);
  const places: Record<string, string> = {
    'the output': gateway.output(),
    'the metrics': (await httpClient(gateway.adminUrl).get('/metrics')).text,
    'the API description': (await httpClient(gateway.adminUrl).get('/openapi.json')).text,
    readiness: (await httpClient(gateway.adminUrl).get('/readyz')).text,
    'GET /v1/logs': (await user.client.get('/v1/logs?limit=1000')).text,
    'GET /v1/stats': (await user.client.get('/v1/stats?group_by=provider,model,mode')).text,
    Postgres: await postgresDump(),
    'the bytes of Postgres': await postgresBytes(),
    Redis: await redisDump(),
    'all answers': bodies.join('\n'),
  };
  expect(await metric(gateway, 'gw_requests_total')).toBeGreaterThan(60);
  for (const [where, text] of Object.entries(places)) expect(hits(where, text, secrets)).toEqual([]);
});

test('the search finds what it looks for', () => {
  for (const secret of Object.values(secrets))
    for (const encoded of [
      secret,
      Buffer.from(`{"k":"${secret}"}`).toString('base64'),
      encodeURIComponent(secret),
    ])
      expect(hits('a trap', `before ${encoded} after`, { secret })).not.toEqual([]);
});
