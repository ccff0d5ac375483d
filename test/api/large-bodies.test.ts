/** Bodies that are large, many, or refused before they have arrived, at the heap of the chart's smallest pod. */
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { chatBody, chatPath } from '../harness/gateway/chat.ts';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import { httpClient, sendRaw } from '../harness/gateway/http-client.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { metric } from '../harness/measure/fault-metrics.ts';
import { hang } from '../harness/vendors/vendor-plans.ts';

const mebibyte = 1024 * 1024;
const overloaded = { status: 503, type: 'service_unavailable_error', code: 'overloaded' } as const;
const tooLarge = { status: 413, type: 'invalid_request_error', code: 'body_too_large' } as const;

const gateway = useGateway({
  env: { NODE_OPTIONS: '--max-old-space-size=307', GW_MAX_EVENT_LOOP_DELAY_MS: '0' },
});
const user = useUser(gateway, ['openai']);

/** A chat of exactly `bytes`. */
function chatOf(bytes: number, filling = 'z'): string {
  const body = (content: string) => JSON.stringify(chatBody({ messages: [{ role: 'user', content }] }));
  return body(filling.padEnd(bytes - Buffer.byteLength(body(filling)) + filling.length, 'z'));
}

const shed = () => metric(gateway, 'gw_shed_requests_total{resource="body_bytes"}');

const head = (extra: string, path = chatPath, key = user.key) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${extra}\r\n\r\n`;

/** A request whose body stays unfinished until `socket.destroy()`. */
function begin(text: string): Socket {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  socket.on('error', () => {});
  socket.write(text);
  return socket;
}

/** What large bodies take now of the room there is for them. */
const taken = () => metric(gateway, 'gw_pressure_ratio{resource="body_bytes"}');

/** Somebody else takes the room that bodies larger than a share have; the returned function gives it back. */
async function crowd(): Promise<() => Promise<void>> {
  gateway.vendors.openai.script(hang);
  const other = await registerWithKeys(gateway.url, ['openai']);
  const body = chatOf(19 * mebibyte);
  const socket = begin(head(`content-length: ${body.length}`, chatPath, other.key) + body);
  await eventually(async () => gateway.vendors.ledger().length === 1 || undefined, 15_000);
  gateway.vendors.clear();
  return async () => {
    socket.destroy();
    await eventually(async () => ((await taken()) === 0 ? true : undefined));
  };
}

describe('large bodies', () => {
  test.each([
    ['ASCII', 'z'],
    ['two bytes per character in memory', 'न'],
  ])('up to the limit are served, one after the other: %s', async (_name, filling) => {
    const body = chatOf(20 * mebibyte, filling);
    expect(Buffer.byteLength(body)).toBe(20 * mebibyte);
    for (let round = 0; round < 3; round += 1) {
      expect((await user.client.post(chatPath, body)).status).toBe(200);
    }
  });

  test('in a crowd are served or refused with 503, and nobody else is hurt', async () => {
    const body = chatOf(19 * mebibyte, 'न');
    const before = await shed();
    const all = await Promise.all(Array.from({ length: 50 }, () => user.client.post(chatPath, body)));
    const refused = all.filter((response) => response.status !== 200);
    expect(refused.length).toBeLessThan(50);
    for (const response of refused) {
      expectError(response, overloaded);
      expect(response.headers['retry-after']).toBe('1');
    }
    expect(await shed()).toBe(before + refused.length);
    expect((await user.client.post(chatPath, body)).status, 'afterwards').toBe(200);
  }, 120_000);

  test('are refused while others take the room; small ones are served', async () => {
    const leave = await crowd();
    try {
      const before = await shed();
      expectError(await user.client.post(chatPath, chatOf(19 * mebibyte)), overloaded);
      expect((await user.client.post(chatPath, chatOf(60_000))).status).toBe(200);
      const chunk = `${mebibyte.toString(16)}\r\n${'x'.repeat(mebibyte)}\r\n`;
      const { statuses, text } = await sendRaw(gateway.url, {
        // It is refused once it is whole, for what it would cost to parse, not for its bytes.
        parts: [head('transfer-encoding: chunked'), ...Array.from({ length: 19 }, () => chunk), '0\r\n\r\n'],
        until: (received) => received.includes('overloaded'),
      });
      expect(statuses, text).toEqual([503]);
      expect(await shed()).toBe(before + 2);
    } finally {
      await leave();
    }
    expect((await user.client.post(chatPath, chatOf(19 * mebibyte))).status).toBe(200);
  });

  test('keep their room without their client for as long as another one waits for the same answer', async () => {
    gateway.vendors.openai.script(hang);
    const ask = (body: string) =>
      begin(head(`x-gateway-cache: true\r\ncontent-length: ${body.length}`) + body);
    const underWay = (count: number) =>
      eventually(async () => (await metric(gateway, 'gw_inflight_requests')) === count || undefined, 15_000);
    const left = () =>
      metric(gateway, 'http_server_request_duration_seconds_count', ['="499"', '/v1/chat/completions']);
    const before = await left();
    const same = { messages: [{ role: 'user', content: 'large, then small' }], stream: true };
    const leader = ask(
      JSON.stringify(chatBody({ ...same, stream_options: { x: 'z'.repeat(4 * mebibyte) } })),
    );
    await eventually(async () => gateway.vendors.ledger().length === 1 || undefined, 15_000);
    const follower = ask(JSON.stringify(chatBody(same)));
    await underWay(2);
    const held = await taken();
    expect(held).toBeGreaterThan(0);
    leader.destroy();
    await eventually(async () => (await left()) === before + 1 || undefined);
    expect(await taken()).toBe(held);
    follower.destroy();
    await underWay(0);
    await eventually(async () => (await taken()) === 0 || undefined);
    expect(gateway.vendors.ledger()).toHaveLength(1);
    gateway.vendors.clear();
  }, 60_000);

  test.each([
    ['{},', 'too_many_values'],
    ['[],', 'too_many_values'],
    ['"k":1,', 'too_many_keys'],
  ])('of very many values are refused before they are parsed: %s', async (unit, code) => {
    const inner = unit.repeat(Math.floor((19 * mebibyte) / unit.length)).slice(0, -1);
    const text = unit.startsWith('"') ? `{${inner}}` : `{"model":"gw/balanced","messages":[${inner}]}`;
    const error = expectInvalid(await user.client.post(chatPath, text), null);
    expect(error.code).toBe(code);
  });

  test('with a key that V8 cannot tell from others of its length are refused before they are parsed', async () => {
    const keys = Array.from({ length: 1_000 }, (_, index) => `"${'k'.repeat(16_384)}${index + 1_000}":1`);
    const error = expectInvalid(await user.client.post(chatPath, `{${keys.join(',')}}`), null);
    expect(error).toMatchObject({
      code: 'too_many_keys',
      message: 'The body holds a key of more than 16000 bytes.',
    });
  });

  test('are taken by the chat route only', async () => {
    const body = JSON.stringify({ email: 'a@example.com', more: 'x'.repeat(70_000) });
    for (const path of ['/v1/users', '/v1/keys']) {
      expectError(await user.client.post(path, body), tooLarge);
    }
    expectError(await user.client.request('DELETE', '/v1/keys/x', { body }), tooLarge);
  });
});

describe('a refusal before the body has arrived', () => {
  test.each([21, 25, 60])('reaches a client that reads at once, %s MiB', async (size) => {
    expectError(await user.client.post(chatPath, Buffer.alloc(size * mebibyte, 120)), tooLarge);
    expectError(await httpClient(gateway.url, 'nobody').post(chatPath, Buffer.alloc(size * mebibyte, 120)), {
      status: 401,
      type: 'authentication_error',
    });
  });

  test.each([
    ['keep-alive', 21, ''],
    ['keep-alive', 60, ''],
    ['close', 60, 'connection: close\r\n'],
  ])('reaches a client that writes its whole body first: %s, %s MiB', async (_name, size, extra) => {
    const body = Buffer.alloc(size * mebibyte, 120);
    for (const key of [user.key, 'nobody']) {
      const status = await new Promise<string>((resolve) => {
        const socket = begin(head(`${extra}content-length: ${body.length}`, chatPath, key));
        socket.pause();
        socket.on('close', () => resolve(`closed: ${text}`));
        let text = '';
        socket.write(body, () => {
          socket.on('data', (chunk) => {
            text += chunk.toString('latin1');
            if (text.includes('request_id')) resolve(text.slice(9, 12));
          });
          socket.resume();
        });
      });
      expect(status).toBe(key === 'nobody' ? '401' : '413');
    }
  });

  test('leaves the connection usable once the body is over', async () => {
    const body = 'x'.repeat(21 * mebibyte);
    const { statuses } = await sendRaw(gateway.url, {
      parts: [
        head(`content-length: ${body.length}`),
        body,
        'GET /v1/nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
      ],
    });
    expect(statuses).toEqual([413, 404]);
  });

  test('closes when the client stops, and when it never ends', async () => {
    const silent = await sendRaw(gateway.url, { parts: [head('content-length: 99999999')], limitMs: 8_000 });
    expect([silent.statuses, silent.closed]).toEqual([[413], true]);
    const endless = Array.from({ length: 200 }, () => Buffer.alloc(mebibyte, 120));
    const flood = await sendRaw(gateway.url, {
      parts: [head('content-length: 9999999999'), ...endless],
      limitMs: 8_000,
    });
    expect(flood.closed).toBe(true);
  });

  test('of an unknown path or method does not wait for the body', async () => {
    for (const [method, path, status] of [
      ['POST', '/nowhere', 404],
      ['PUT', '/v1/keys', 405],
    ] as const) {
      const text = head('content-length: 1000000', path).replace('POST', method);
      const exchange = await sendRaw(gateway.url, {
        parts: [text],
        until: (received) => received.includes('request_id'),
        limitMs: 1_500,
      });
      expect(exchange.statuses).toEqual([status]);
    }
  });
});
