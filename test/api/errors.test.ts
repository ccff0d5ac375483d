/** SPEC 7: one envelope for every error, those of HTTP itself included. */
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { chatBody, chatPath } from '../harness/gateway/chat.ts';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import type { HttpResponse } from '../harness/gateway/http-client.ts';
import { sendRaw } from '../harness/gateway/http-client.ts';
import { addKey } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';

const gateway = useGateway({ env: { GW_BODY_LIMIT_BYTES: '65536' } });
const user = useUser(gateway);

const refused = (status: number) => ({ status, type: 'invalid_request_error' });

describe('404', () => {
  test.each([
    '/v1/nothing',
    '/v1',
    '/',
    '/v2/chat/completions',
    '/v1/embeddings',
    '/v1/responses',
    '/v1/completions',
    '/favicon.ico',
  ])('not_found_error for the unknown route %s', async (path) => {
    for (const method of ['GET', 'POST'])
      expectError(await user.client.request(method, path, method === 'POST' ? { body: {} } : {}), {
        status: 404,
        type: 'not_found_error',
      });
  });
});

describe('405', () => {
  test.each([
    ['GET', '/v1/chat/completions', 'POST'],
    ['PUT', '/v1/keys', 'GET'],
    ['PATCH', '/v1/keys', 'POST'],
    ['DELETE', '/v1/logs', 'GET'],
    ['POST', '/v1/logs', 'GET'],
    ['GET', '/v1/users', 'POST'],
    ['POST', '/v1/models', 'GET'],
  ])('for %s %s, with an Allow header that names %s', async (method, path, allowed) => {
    const response = await user.client.request(method, path, {});
    expectError(response, refused(405));
    expect(response.headers['allow']).toContain(allowed);
  });
});

describe('413', () => {
  test('for a body over the limit, declared', async () => {
    const response = await user.client.post(chatPath, chatBody({ user: 'x'.repeat(70_000) }));
    expectError(response, refused(413));
    expect(gateway.vendors.ledger()).toEqual([]);
  });

  test('for a chunked body as soon as the limit is passed', async () => {
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const { statuses, closed } = await sendRaw(gateway.url, {
      parts: [
        `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
        chunk,
        chunk,
      ],
    });
    expect(statuses).toEqual([413]);
    expect(closed).toBe(true);
  });

  test('not for a body at the limit', async () => {
    const empty = JSON.stringify(chatBody({ messages: [{ role: 'user', content: '' }] })).length;
    const messages = [{ role: 'user', content: 'x'.repeat(65_536 - empty) }];
    expect((await user.client.post(chatPath, chatBody({ messages }))).status).toBe(200);
  });
});

describe('415', () => {
  test.each([
    'text/plain',
    'text/plain; charset=utf-8',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/xml',
    'application/jsonx',
    'application/json2',
    'text/json',
    'application',
    'json',
    'application/octet-stream',
    'application/json\ta',
    'application/json garbage',
    'application/json; charset=utf-16',
    'application/json; charset=utf-16le',
    '*/*',
    'undefined',
  ])('for the content type %j', async (type) => {
    for (const path of [chatPath, '/v1/keys', '/v1/users'])
      expectError(
        await user.client.post(path, JSON.stringify(chatBody()), { 'content-type': type }),
        refused(415),
      );
    expect(gateway.vendors.ledger()).toEqual([]);
  });

  test('and the connection goes on', async () => {
    const body = JSON.stringify(chatBody());
    const head = (type: string, more = '') =>
      `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`;
    const { statuses } = await sendRaw(gateway.url, {
      parts: [head('text/plain'), head('application/json', 'connection: close\r\n')],
    });
    expect(statuses).toEqual([415, 200]);
  });

  test('for a missing content type', async () => {
    const body = JSON.stringify(chatBody());
    const { statuses } = await sendRaw(gateway.url, {
      parts: [
        `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      ],
    });
    expect(statuses).toEqual([415]);
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/json'])(
    'not for %j where there is no body',
    async (type) => {
      for (const length of ['', 'content-length: 0\r\n']) {
        const { id } = await addKey(user, {
          provider: 'self_hosted',
          api_key: 'none',
          base_url: 'http://127.0.0.1:9',
          declared_region: 'x',
        });
        const ask = (method: string, path: string) =>
          sendRaw(gateway.url, {
            parts: [
              `${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: ${type}\r\n${length}connection: close\r\n\r\n`,
            ],
          });
        expect((await ask('DELETE', `/v1/keys/${id}`)).statuses).toEqual([204]);
        expect((await ask('POST', '/v1/service-keys')).statuses).toEqual([422]);
        expect((await ask('DELETE', '/v1/nowhere')).statuses).toEqual([404]);
      }
    },
  );

  const chunked = async (method: string, path: string, type: string | null, ...chunks: readonly string[]) => {
    const named = type === null ? '' : `content-type: ${type}\r\n`;
    const head = `${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\n${named}`;
    const body = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    const more = 'transfer-encoding: chunked\r\nconnection: close\r\n\r\n';
    const { statuses } = await sendRaw(gateway.url, { parts: [`${head}${more}`, ...body, '0\r\n\r\n'] });
    return statuses;
  };

  test.each([null, 'text/plain', 'application/x-www-form-urlencoded', 'application/json'])(
    'not for the type %j of a body in chunks that holds nothing',
    async (type) => {
      const { id } = await addKey(user, {
        provider: 'self_hosted',
        api_key: 'none',
        base_url: 'http://127.0.0.1:9',
        declared_region: 'x',
      });
      expect(await chunked('POST', `/v1/keys/${id}/check`, type)).toEqual([200]);
      expect(await chunked('DELETE', `/v1/keys/${id}`, type)).toEqual([204]);
      expect(await chunked('POST', '/v1/service-keys', type)).toEqual([422]);
      expect(await chunked('POST', chatPath, type)).toEqual([422]);
    },
  );

  test.each([null, 'text/plain'])(
    'for the type %j of a body in chunks that holds something',
    async (type) => {
      const body = JSON.stringify(chatBody());
      expect(await chunked('POST', chatPath, type, body)).toEqual([415]);
      expect(await chunked('POST', chatPath, type, 'x', 'x'.repeat(100_000), body)).toEqual([415]);
      expect(await chunked('DELETE', '/v1/keys/x', type, ' ')).toEqual([415]);
      expect(gateway.vendors.ledger()).toEqual([]);
    },
  );

  test.each([
    'application/json',
    'Application/JSON',
    'application/json;charset=utf-8',
    'application/json; charset=UTF-8',
    'application/json ; charset="utf-8"',
  ])('not for %j', async (type) => {
    const response = await user.client.post(chatPath, JSON.stringify(chatBody()), { 'content-type': type });
    expect(response.status, response.text).toBe(200);
  });

  test.each(['gzip', 'br', 'deflate', 'gzip, gzip', 'nonsense'])(
    'for the content encoding %s',
    async (encoding) => {
      const response = await user.client.post(chatPath, gzipSync(JSON.stringify(chatBody())), {
        'content-encoding': encoding,
      });
      expectError(response, refused(415));
    },
  );

  test.each(['identity', ''])('not for the content encoding %j', async (encoding) => {
    const response = await user.client.post(chatPath, chatBody(), { 'content-encoding': encoding });
    expect(response.status).toBe(200);
  });
});

describe('431', () => {
  test('for headers beyond the limit', async () => {
    const { statuses, text } = await sendRaw(gateway.url, {
      parts: [`GET /v1/keys HTTP/1.1\r\nhost: x\r\nx-flood: ${'a'.repeat(80_000)}\r\n\r\n`],
    });
    expect(statuses).toEqual([431]);
    const body = JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as { error: Record<string, unknown> };
    expect(body.error).toMatchObject({ type: 'invalid_request_error', param: null });
    expect(text).toMatch(/\r\nx-request-id: /i);
  });
});

/** 0007: what has the header began with tables; these were refused before there was a request. */
test.each([
  [
    'headers beyond the limit',
    431,
    `GET /v1/keys HTTP/1.1\r\nhost: x\r\nx-flood: ${'a'.repeat(80_000)}\r\n\r\n`,
  ],
  ['malformed HTTP', 400, 'GET /v1/keys HTTP/1.1\r\nhost x\r\n\r\n'],
  ['a tunnel', 405, 'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n'],
])('%s: the answer names itself and no tables', async (_name, status, sent) => {
  const { statuses, text } = await sendRaw(gateway.url, { parts: [sent] });
  expect(statuses).toEqual([status]);
  expect(text).toMatch(/\r\nx-request-id: /i);
  expect(text).not.toMatch(/x-gateway-tables-version/i);
});

test('an odd request names its tables as any other', async () => {
  const { statuses, text } = await sendRaw(gateway.url, { parts: ['GET /v1/keys HTTP/1.1\r\n\r\n'] });
  expect(statuses).toEqual([400]);
  expect(text).toMatch(/\r\nx-gateway-tables-version: /i);
});

describe('a key that could reach a prototype', () => {
  test.each([
    ['__proto__', '{"model":"gw/balanced","__proto__":{"a":1}}'],
    ['__proto__', '{"model":"gw/balanced","messages":[{"role":"user","\\u005f_proto__":{"a":1}}]}'],
    ['constructor.prototype', '{"messages":[{"constructor":{"prototype":{"a":1}}}]}'],
  ])('is refused by its name: %s', async (name, body) => {
    for (const path of [chatPath, '/v1/keys', '/v1/users']) {
      const error = expectInvalid(await user.client.post(path, body), name);
      expect(error).toMatchObject({ code: 'forbidden_key', message: `The key ${name} is not allowed.` });
    }
  });

  test('is not refused as a value', async () => {
    const messages = [{ role: 'user', content: '"__proto__": {"constructor": {"prototype": 1}}' }];
    expect((await user.client.post(chatPath, chatBody({ messages }))).status).toBe(200);
  });
});

describe('malformed JSON', () => {
  test.each(['{', '', 'x', '{"a":}', '{"model":"gw/balanced"} trailing'])('is 422: %j', async (body) => {
    for (const path of [chatPath, '/v1/keys', '/v1/users']) expectInvalid(await user.client.post(path, body));
  });

  test('leaves the connection usable', async () => {
    const bad = `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: application/json\r\ncontent-length: 1\r\n\r\n{`;
    const good = `GET /v1/keys HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\nconnection: close\r\n\r\n`;
    expect((await sendRaw(gateway.url, { parts: [bad, good] })).statuses).toEqual([422, 200]);
  });
});

describe('the text of an error', () => {
  const answers = async (): Promise<HttpResponse[]> => [
    await user.client.post(chatPath, chatBody({ temperature: 9 })),
    await user.client.post('/v1/keys', { provider: 'openai', api_key: 'sk-canary-in-body', label: 1 }),
    await user.client.get('/v1/logs?cursor=canary'),
    await user.client.get('/v1/nothing'),
  ];

  test('holds no stack, file name, SQL or secret', async () => {
    for (const response of await answers()) {
      expect(response.status).toBeGreaterThanOrEqual(400);
      expect(response.text).not.toMatch(
        /node_modules|\.ts\b|\.js\b|\bat \w+ \(|SELECT |INSERT |sk-canary-in-body/,
      );
      expect(response.text).not.toContain(user.key);
    }
  });

  test('has no more than the documented fields', async () => {
    for (const response of await answers()) {
      const body = response.json<Record<string, object>>();
      const fields = [...Object.keys(body), ...Object.keys(body['error'] ?? {})].filter(
        (name) => name !== 'error',
      );
      expect(fields.sort()).toEqual(['code', 'message', 'param', 'request_id', 'type']);
    }
  });
});
