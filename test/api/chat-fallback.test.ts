/** SPEC 4.5, routing rule 1: every way in which a candidate can fail, and the next one that answers. */
import { describe, expect, test } from 'vitest';
import {
  chat,
  chatBody,
  chatOk,
  chatPath,
  gatewayOf,
  logRowsOnceThere,
  streamed,
} from '../harness/gateway/chat.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';
import {
  answer,
  closeSilently,
  emptyOk,
  failure,
  firstEventError,
  hang,
  headersThenSilence,
  htmlOk,
  rawBytes,
  redirect,
  reset,
  respond,
  roleThenError,
  tokensThen,
  truncatedJson,
} from '../harness/vendors/vendor-plans.ts';
import type { Script } from '../harness/vendors/vendor-reply.ts';
import { gzipped } from '../harness/vendors/vendor-reply.ts';

const gateway = useGateway();
const user = useUser(gateway);

const failures: [name: string, script: Script, headers?: Record<string, string>][] = [
  ...[400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 429, 500, 502, 503, 504, 520, 529].map(
    (status): [string, Script] => [`status ${status}`, failure(status)],
  ),
  ['a redirect', redirect('http://127.0.0.1:9/elsewhere')],
  ['a reset', reset],
  ['a silent close', closeSilently],
  ['an empty 200', emptyOk],
  ['an HTML 200', htmlOk],
  ['a 204', respond(204, '')],
  ['an error object in a 200', respond(200, '{"error":{"message":"no","type":"server_error"}}')],
  ['an unreadable 200', respond(200, '{"hello":"world"}')],
  ['a body cut by FIN', respond(200, '{"id":"x","choi', { 'content-type': 'application/json' }, 'fin')],
  ['a body cut by reset', respond(200, '{"id":"x","choi', { 'content-type': 'application/json' }, 'reset')],
  ['bytes that are no HTTP', rawBytes('SMTP ready\r\n')],
  ['a bad status line', rawBytes('HTTP/1.1 abc OK\r\ncontent-length: 0\r\n\r\n')],
  ['a 101', rawBytes('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n')],
  ['less than its content-length', rawBytes('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}')],
  ['a bad chunk size', rawBytes('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}')],
  ['1 MB of headers', rawBytes(`HTTP/1.1 200 OK\r\nx-big: ${'a'.repeat(1_000_000)}\r\n\r\n{}`)],
  ['silence', hang, { 'x-gateway-timeout': '1' }],
  ['headers, then silence', headersThenSilence, { 'x-gateway-timeout': '1' }],
];

describe('falls back to the next candidate', () => {
  test.each([...failures, ['a truncated body', truncatedJson] as [string, Script]])(
    'when the first one answers with %s',
    async (_name, script, headers = {}) => {
      gateway.vendors.openai.script(script);
      const body = await chatOk(user.client, {}, headers);
      expect(body.gateway).toMatchObject({
        provider: 'sarvam',
        model: 'sarvam-test',
        residency_actual: 'india',
      });
      expect(body.model).toBe('sarvam-test');
      expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam']);
    },
  );

  test.each<[string, Script, Record<string, string>?]>([
    ...failures,
    ['an error as the first event', firstEventError],
    ['a role and then an error', roleThenError],
    ['a role and then a clean end', tokensThen(0, 'clean-end')],
    ['a role and then a FIN', tokensThen(0, 'fin')],
    ['a role and then a reset', tokensThen(0, 'reset')],
    ['a role and then silence', tokensThen(0, 'hang'), { 'x-gateway-timeout': '1' }],
    ['only [DONE]', respond(200, 'data: [DONE]\n\n', { 'content-type': 'text/event-stream' })],
  ])('of a stream when the first one answers with %s', async (_name, script, headers = {}) => {
    gateway.vendors.openai.script(script);
    const stream = await streamed(user.client, {}, headers);
    expect(stream.content).toBe('Namaste, world.');
    expect(stream.done).toBe(true);
    expect(gatewayOf(stream)).toMatchObject({ provider: 'sarvam', residency_actual: 'india' });
    expect(stream.chunks.every((chunk) => chunk.model === 'sarvam-test')).toBe(true);
    expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam']);
  });

  test('twice when need be', async () => {
    gateway.vendors.openai.script(failure(429));
    gateway.vendors.sarvam.script(reset);
    expect((await chatOk(user.client)).gateway.provider).toBe('anthropic');
    expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam', 'anthropic']);
  });

  test('without trying the same candidate twice', async () => {
    gateway.vendors.always(reset);
    expect((await chat(user.client)).status).toBe(502);
    expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam', 'anthropic']);
  });

  test('with a redirect’s target never called', async () => {
    gateway.vendors.openai.script(redirect(`${gateway.vendors.together.url}/v1/chat/completions`));
    await chatOk(user.client);
    expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam']);
  });
});

describe('a kept-alive connection', () => {
  const warm = async () => {
    await chatOk(user.client);
    gateway.vendors.clear();
  };

  test('that the vendor ended in the meantime costs nobody a failure', async () => {
    for (let round = 0; round < 20; round += 1) {
      await warm();
      gateway.vendors.openai.endSockets();
      expect((await chatOk(user.client)).gateway.provider).toBe('openai');
      expect(gateway.vendors.calls()).toEqual(['openai']);
    }
  });

  test.each<[string, Script]>([
    ['a reset', reset],
    ['half a status line', rawBytes('HTTP/1.1 20')],
    ['half a head', rawBytes('HTTP/1.1 200 OK\r\ncontent-type: appl')],
    ['an answer cut in the middle', rawBytes('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{')],
  ])(
    'whose vendor answers the request with %s is not asked twice: it may have been billed',
    async (_name, script) => {
      for (let round = 0; round < 5; round += 1) {
        await warm();
        gateway.vendors.openai.script(script);
        expect((await chatOk(user.client)).gateway.provider).toBe('sarvam');
        expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam']);
      }
    },
  );
});

describe('a client that leaves', () => {
  test('ends the upstream call, stops the fallback and has one row', async () => {
    const owner = await registerWithKeys(gateway.url);
    gateway.vendors.always(hang);
    const controller = new AbortController();
    const leaving = owner.client.request('POST', chatPath, { body: chatBody(), signal: controller.signal });
    const call = await gateway.vendors.openai.received(0);
    const left = performance.now();
    controller.abort();
    await expect(leaving).rejects.toThrow();
    expect(await call.closedEarly).toBe(true);
    expectInTime((call.peerClosedAtMs ?? Number.POSITIVE_INFINITY) - left, 100);
    const rows = await logRowsOnceThere(owner.client, 1);
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ status: 'client_closed', cost_usd: '0.000000' });
    expect(gateway.vendors.calls()).toEqual(['openai']);
  });
});

describe('a vendor’s compressed answer', () => {
  test('that was not asked for is read or passed over, never shown as rubbish', async () => {
    gateway.vendors.openai.script(gzipped(answer()));
    const body = await chatOk(user.client);
    expect(body.choices[0]?.message['content']).toBe('Namaste, world.');
    expect(gateway.vendors.openai.ledger[0]?.headers['accept-encoding'] ?? 'identity').toBe('identity');
  });
});
