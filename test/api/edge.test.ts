/** What no proper client would send: smuggled, flooded, slow and broken HTTP on a raw socket. */
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { chatBody, chatPath, logRowsOnceThere } from '../harness/gateway/chat.ts';
import { httpClient, sendRaw } from '../harness/gateway/http-client.ts';
import { addKey, registerUser } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { answer } from '../harness/vendors/vendor-plans.ts';
import smuggling from './smuggling.json' with { type: 'json' };

const gateway = useGateway();
const user = useUser(gateway);

const bytes = (text: string) => Buffer.from(text, 'latin1');

/** A whole JSON request, keep-alive unless told otherwise. */
function jsonRequest(path: string, key: string, body: unknown, extra = ''): string {
  const text = JSON.stringify(body);
  return `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${extra}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
}

describe('request smuggling', () => {
  const starts = ['POST /v1/users', 'POST /v1/chat/completions', 'GET /v1/keys', 'DELETE /v1/keys/x'];

  test.each(smuggling)('is refused and the connection closed: $name', async ({ headers, body }) => {
    for (const start of starts) {
      const email = `${randomUUID()}@example.com`;
      const smuggled = `POST /v1/users HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${JSON.stringify({ email }).length}\r\n\r\n${JSON.stringify({ email })}`;
      const head = `${start} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: application/json\r\n`;
      const { statuses, closed } = await sendRaw(gateway.url, {
        parts: [bytes(`${head}${headers}\r\n\r\n${body ?? ''}${smuggled}`)],
        limitMs: 2_000,
      });
      expect(statuses.length, `${start}: ${statuses}`).toBeLessThanOrEqual(1);
      for (const status of statuses) {
        expect(status).toBeGreaterThanOrEqual(400);
        expect(status).toBeLessThan(500);
      }
      expect(closed).toBe(true);
      const later = await httpClient(gateway.url).post('/v1/users', { email });
      expect(later.status, 'the smuggled registration must not have run').toBe(201);
    }
    expect(gateway.vendors.ledger()).toEqual([]);
  });

  test.each([
    ['no Host', 'GET /v1/keys HTTP/1.1\r\n\r\n'],
    ['two Hosts', 'GET /v1/keys HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n'],
    ['an unknown method', 'BREW /v1/keys HTTP/1.1\r\nhost: x\r\n\r\n'],
    ['a method in lower case', 'get /v1/keys HTTP/1.1\r\nhost: x\r\n\r\n'],
    ['no version', 'GET /v1/keys\r\n\r\n'],
    ['HTTP/9.9', 'GET /v1/keys HTTP/9.9\r\nhost: x\r\n\r\n'],
    ['the HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a TLS hello', '\u0016\u0003\u0001\u0000\u00a5\u0001\u0000\u0000\u00a1\u0003\u0003'],
    ['a tab in the request line', 'GET\t/v1/keys\tHTTP/1.1\r\nhost: x\r\n\r\n'],
    ['a NUL in the path', 'GET /v1/\u0000keys HTTP/1.1\r\nhost: x\r\n\r\n'],
    ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n'],
    ['TRACE', 'TRACE /v1/keys HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'],
    ['nothing but line ends', '\r\n\r\n\r\n\r\nx\r\n\r\n'],
  ])('a broken request line or head gets no more than an error: %s', async (_name, text) => {
    const { statuses, closed } = await sendRaw(gateway.url, { parts: [bytes(text)], limitMs: 3_000 });
    expect(statuses.length).toBeLessThanOrEqual(1);
    for (const status of statuses) {
      expect(status).toBeGreaterThanOrEqual(400);
      expect(status).toBeLessThanOrEqual(505);
      expect(status).not.toBe(500);
    }
    expect(closed).toBe(true);
  });
});

describe('what Node or the framework would answer in their own words', () => {
  test.each([
    [
      'QUERY without a type',
      'QUERY /v1/keys HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
      405,
      'method_not_allowed',
    ],
    ['QUERY of nothing', 'QUERY /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n', 404, 'not_found'],
    [
      'another expectation',
      'GET /v1/keys HTTP/1.1\r\nhost: x\r\nexpect: foo\r\n\r\n',
      417,
      'expectation_failed',
    ],
    ['no Host', 'GET /v1/keys HTTP/1.1\r\n\r\n', 400, 'malformed_http'],
    ['two Hosts', 'GET /v1/keys HTTP/1.1\r\nhost: a\r\nHost: b\r\n\r\n', 400, 'malformed_http'],
    [
      'CONNECT',
      'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n',
      405,
      'method_not_allowed',
    ],
    ['a version', 'GET /v1/keys HTTP/9.9\r\nhost: x\r\n\r\n', 400, 'malformed_http'],
  ])('is in the envelope, on both ports: %s', async (_name, text, status, code) => {
    for (const url of [gateway.url, gateway.adminUrl]) {
      const answer = await sendRaw(url, { parts: [bytes(text)], limitMs: 3_000 });
      const expected = url === gateway.adminUrl && status === 405 && text.startsWith('QUERY') ? 404 : status;
      expect(answer.statuses).toEqual([expected]);
      expect(answer.closed).toBe(true);
      const [head = '', body = ''] = answer.text.split('\r\n\r\n');
      const { error } = JSON.parse(body) as { error: { code: string; request_id: string } };
      expect(error.code).toBe(expected === status ? code : 'not_found');
      expect(head.toLowerCase()).toContain(`x-request-id: ${error.request_id}`);
      expect(head.toLowerCase()).toContain('content-type: application/json');
    }
    expect(gateway.output()).not.toContain('unhandled error');
  });

  test('is settled before a body is asked for', async () => {
    for (const key of ['nobody', user.key]) {
      const { statuses } = await sendRaw(gateway.url, {
        parts: [
          `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 99999999\r\n\r\n`,
        ],
        limitMs: 4_000,
      });
      expect(statuses).toEqual([key === 'nobody' ? 401 : 413]);
    }
  });

  test('a header of ours that was sent twice with two values is refused', async () => {
    const twice = 'x-gateway-override-model: openai:a\r\nX-Gateway-Override-Model: openai:b\r\n';
    const text = jsonRequest(chatPath, user.key, chatBody(), `${twice}connection: close\r\n`);
    const answer = await sendRaw(gateway.url, { parts: [text] });
    expect(answer.statuses).toEqual([422]);
    expect(answer.text).toContain('"param":"X-Gateway-Override-Model"');
    expect(gateway.vendors.ledger()).toEqual([]);
  });

  test('a model name in UTF-8 reaches the vendor as it is', async () => {
    const text = jsonRequest(
      chatPath,
      user.key,
      chatBody(),
      'x-gateway-override-model: openai:modèle\r\nconnection: close\r\n',
    );
    expect((await sendRaw(gateway.url, { parts: [Buffer.from(text, 'utf8')] })).statuses).toEqual([200]);
    expect(gateway.vendors.openai.ledger[0]?.body['model']).toBe('modèle');
  });
});

describe('odd but lawful requests', () => {
  test('work when their bytes come one by one', async () => {
    const text = jsonRequest(chatPath, user.key, chatBody(), 'connection: close\r\n');
    const { statuses } = await sendRaw(gateway.url, { parts: [...text].map((byte) => bytes(byte)) });
    expect(statuses).toEqual([200]);
  });

  test('work with a chunked body', async () => {
    const text = JSON.stringify(chatBody());
    const head = `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n`;
    const chunks = [...text].map((letter) => `1\r\n${letter}\r\n`).join('');
    expect((await sendRaw(gateway.url, { parts: [`${head}${chunks}0\r\n\r\n`] })).statuses).toEqual([200]);
  });

  test('work after Expect: 100-continue', async () => {
    const text = jsonRequest(chatPath, user.key, chatBody(), 'connection: close\r\nexpect: 100-continue\r\n');
    expect((await sendRaw(gateway.url, { parts: [text] })).statuses).toEqual([100, 200]);
  });

  test('are answered plainly when they ask for an upgrade', async () => {
    const { statuses } = await sendRaw(gateway.url, {
      parts: [
        `GET /v1/keys HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: x3JJHMbDL1EzLkh9GBhXDw==\r\nsec-websocket-version: 13\r\n\r\n`,
      ],
      until: (text) => text.includes('\r\n\r\n'),
      limitMs: 3_000,
    });
    expect([200, 400, 426]).toContain(statuses[0]);
  });

  test('in absolute form are served or refused, never proxied', async () => {
    const { statuses } = await sendRaw(gateway.url, {
      parts: [
        `GET http://example.com/v1/keys HTTP/1.1\r\nhost: example.com\r\nauthorization: Bearer ${user.key}\r\nconnection: close\r\n\r\n`,
      ],
    });
    expect([200, 400, 404]).toContain(statuses[0]);
  });

  test.each([
    '/%00',
    '/v1/keys/%00',
    '/v1/keys/%2e%2e',
    '/v1/keys/..%2f..%2fetc%2fpasswd',
    '/v1/%',
    '/v1/keys/%zz',
    '/v1/keys/%ff%fe',
    '/v1/models/%00',
    '/v1/logs?limit=%',
    '/v1/logs?cursor=%ff',
    '/v1/logs?__proto__[x]=1',
    `/v1/${'a'.repeat(10_000)}`,
    '//example.com/v1/keys',
    '/v1/keys/../../../../etc/passwd',
    '*',
  ])('with the path %s never cause a server error', async (path) => {
    for (const method of ['GET', 'DELETE', 'OPTIONS']) {
      const { statuses } = await sendRaw(gateway.url, {
        parts: [
          `${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\nconnection: close\r\n\r\n`,
        ],
      });
      expect(statuses, `${method} ${path}`).toHaveLength(1);
      expect(statuses[0]).toBeLessThan(500);
    }
  });
});

describe('header floods', () => {
  test('of one big header give 431', async () => {
    const { statuses, closed } = await sendRaw(gateway.url, {
      parts: [`GET /v1/keys HTTP/1.1\r\nhost: x\r\nx-big: ${'a'.repeat(200_000)}\r\n\r\n`],
    });
    expect(statuses).toEqual([431]);
    expect(closed).toBe(true);
  });

  test('of endless header bytes are cut off', async () => {
    const part = `x-more: ${'a'.repeat(8_000)}\r\n`;
    const { statuses, closed } = await sendRaw(gateway.url, {
      parts: ['GET /v1/keys HTTP/1.1\r\nhost: x\r\n', ...Array.from({ length: 100 }, () => part)],
    });
    // The answer may be lost, since bytes that nobody reads make the close a reset.
    expect(statuses.filter((status) => status !== 431)).toEqual([]);
    expect(closed).toBe(true);
  });

  const many = (count: number, name: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => `${name(index)}:\r\n`).join('');

  test.each([
    ['1,500 names', many(1_500, (index) => `a${index}`)],
    ['2,100 names of one letter, more than Node hands on', many(2_100, () => 'a')],
  ])('of %s never hide the header that comes last', async (_name, crowd) => {
    const last = 'x-gateway-residency: india\r\nconnection: close\r\n';
    const body = JSON.stringify(chatBody());
    const { statuses, text } = await sendRaw(gateway.url, {
      parts: [
        `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${crowd}${last}\r\n${body}`,
      ],
    });
    if (statuses[0] === 200) expect(text).toContain('"provider":"sarvam"');
    else expect(statuses).toEqual([431]);
    expect(gateway.vendors.calls().filter((name) => name !== 'sarvam')).toEqual([]);
  });
});

describe('one connection', () => {
  test('may carry many pipelined requests of different users, never mixed', async () => {
    const users = await Promise.all(
      [0, 1, 2].map(async (index) => {
        const owner = await registerUser(gateway.url);
        await addKey(owner, { provider: 'openai', api_key: `sk-pipe-${index}` });
        return owner;
      }),
    );
    gateway.vendors.openai.always((request) =>
      answer({ text: [`<${String(request.headers['authorization']).slice(-1)}>`] })(request),
    );
    const total = 30;
    const order = Array.from({ length: total }, (_, index) => (index * 7) % 3);
    const parts = order.map((who) => jsonRequest(chatPath, users[who]?.key ?? '', chatBody()));
    parts.push('GET /v1/nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    const { text, statuses } = await sendRaw(gateway.url, { parts, limitMs: 20_000 });
    expect(statuses).toHaveLength(total + 1);
    expect([...text.matchAll(/<(\d)>/g)].map((match) => Number(match[1]))).toEqual(order);
    for (const owner of users)
      expect(await logRowsOnceThere(owner.client, total / 3)).toHaveLength(total / 3);
  });

  test.each([
    ['whole', {}, '"object":"chat.completion"'],
    ['streamed', { stream: true }, 'data: [DONE]'],
  ])(
    'that its client closes behind a request is answered to its end, %s, and nothing behind it',
    async (_how, fields, mark) => {
      const last = jsonRequest(chatPath, user.key, { ...chatBody(), ...fields }, 'connection: close\r\n');
      const { text, statuses } = await sendRaw(gateway.url, {
        parts: [last + jsonRequest(chatPath, user.key, chatBody())],
      });
      expect(statuses).toEqual([200]);
      expect(text).toContain(mark);
    },
  );

  test('survives a refused request and serves the next', async () => {
    const parts = [
      jsonRequest(chatPath, user.key, { model: 'x' }),
      jsonRequest(chatPath, 'wrong', chatBody()),
      jsonRequest(chatPath, user.key, chatBody(), 'connection: close\r\n'),
    ];
    expect((await sendRaw(gateway.url, { parts })).statuses).toEqual([422, 401, 200]);
  });
});

describe('slow clients', () => {
  const open = (first: string) =>
    new Promise<{ text: string; elapsedMs: number }>((resolve) => {
      const started = performance.now();
      let text = '';
      const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
      socket.write(first);
      const drip = setInterval(() => socket.write('a'), 1_000);
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1');
      });
      socket.on('error', () => {});
      socket.on('close', () => {
        clearInterval(drip);
        resolve({ text, elapsedMs: performance.now() - started });
      });
    });

  test('that drip headers are closed first, those that drip bodies later with 408, while others are served', async () => {
    const headers = Array.from({ length: 20 }, () => open('GET /v1/keys HTTP/1.1\r\nhost: x\r\nx-slow: '));
    const body = open(
      `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{`,
    );
    expect((await user.client.get('/v1/keys')).status).toBe(200);
    const slow = await body;
    for (const { elapsedMs } of await Promise.all(headers)) expect(elapsedMs).toBeLessThan(slow.elapsedMs);
    expect(slow.text).toMatch(/^HTTP\/1\.1 408 /);
    expect(slow.text).toMatch(/"type":"invalid_request_error"/);
  });
});
