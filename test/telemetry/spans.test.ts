/** Spans as a collector receives them, ours and the SDK’s, held against what the fake vendors saw. */
import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { chat, chatBody, chatOk, chatPath, streamed } from '../harness/gateway/chat.ts';
import { addKey, providerSecret, registerWithKeys } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import type { ReceivedSpan } from '../harness/servers/otlp-receiver.ts';
import { startOtlpReceiver } from '../harness/servers/otlp-receiver.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { startFakeVendor } from '../harness/vendors/fake-vendor.ts';
import { answer, failure, hang, reset, tokensThen } from '../harness/vendors/vendor-plans.ts';
import { gate } from '../harness/vendors/vendor-reply.ts';

const hex = (bytes: number) => randomBytes(bytes).toString('hex');

/** A trace of its own for each test, begun by the client. */
function clientTrace(flags = '01') {
  const traceId = hex(16);
  const spanId = hex(8);
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${flags}` } };
}

const server = (spans: readonly ReceivedSpan[]) => spans.find((span) => span.kind === 'SERVER');
const eventsOf = (span: ReceivedSpan | undefined) => span?.events.map(({ name }) => name);
const attempts = (spans: readonly ReceivedSpan[]) =>
  spans
    .filter((span) => span.kind === 'CLIENT')
    .sort((a, b) => Number(a.attributes['gw.attempt.number']) - Number(b.attributes['gw.attempt.number']));

describe.each([
  ['of our own', {}],
  ['of the SDK', { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }],
])('spans %s:', (_name, protocol) => {
  const collector = useServer(startOtlpReceiver);
  const ownServer = useServer(startFakeVendor);
  const gateway = useGateway(() => ({
    env: { ...collector.env, ...protocol, GW_TRACE_PROPAGATE_TO: 'self_hosted' },
  }));
  const user = useUser(gateway);

  beforeAll(async () => {
    await addKey(user, {
      provider: 'self_hosted',
      api_key: 'own-secret',
      base_url: ownServer.url,
      declared_region: 'eu',
    });
  });

  describe('a request that is served', () => {
    test('has a SERVER span below the caller’s and one CLIENT span', async () => {
      const { traceId, spanId, headers } = clientTrace();
      const { id, model, gateway: block } = await chatOk(user.client, {}, headers);
      const spans = await collector.trace(traceId, 2);
      expect(spans).toHaveLength(2);
      const root = server(spans);
      expect(root).toMatchObject({
        name: 'POST /v1/chat/completions',
        parentSpanId: spanId,
        status: 'UNSET',
        resource: { 'service.name': 'model-gateway' },
        attributes: {
          'http.request.method': 'POST',
          'http.route': '/v1/chat/completions',
          'http.response.status_code': 200,
          'gw.mode': 'gw/balanced',
          'gw.request_id': block.request_id,
          'gw.residency.actual': 'global',
          'gw.attempts': 1,
          'gw.cache.result': 'bypass',
          'gw.cost_microusd': 46,
          'gw.config.generation': 1,
          'gw.stream': false,
          'gw.outcome': 'success',
        },
      });
      const { hostname, port } = new URL(gateway.vendors.openai.url);
      expect(attempts(spans)).toMatchObject([
        {
          name: 'chat gpt-test',
          parentSpanId: root?.spanId,
          status: 'UNSET',
          attributes: {
            'gen_ai.operation.name': 'chat',
            'gen_ai.provider.name': 'openai',
            'gen_ai.request.model': 'gpt-test',
            'gen_ai.request.stream': false,
            'gen_ai.response.id': id,
            'gen_ai.response.model': model,
            'gen_ai.response.finish_reasons': ['stop'],
            'gen_ai.usage.input_tokens': 11,
            'gen_ai.usage.output_tokens': 7,
            'server.address': hostname,
            'server.port': Number(port),
            'http.response.status_code': 200,
            'gw.attempt.number': 1,
            'gw.attempt.outcome': 'served',
          },
        },
      ]);
      expect(attempts(spans)[0]?.attributes).not.toHaveProperty('error.type');
    });

    test('streams inside its spans: they end at the last byte', async () => {
      const opening = gate();
      gateway.vendors.openai.script((request) => {
        const reply = answer()(request);
        const [role = '', first = '', ...rest] = reply.body;
        return { ...reply, body: [role, first, opening, { waitMs: 120 }, ...rest] };
      });
      const { traceId, headers } = clientTrace();
      const reader = await user.client.stream(chatPath, chatBody({ stream: true }), headers);
      // So long the vendor waits after the gateway has had the first chunk, whenever that was.
      await reader.next();
      opening.open();
      await reader.text();
      const spans = await collector.trace(traceId, 2);
      const [attempt] = attempts(spans);
      const root = server(spans);
      expect(attempt?.attributes).toMatchObject({
        'gen_ai.request.stream': true,
        'gen_ai.response.finish_reasons': ['stop'],
        'gw.attempt.outcome': 'served',
      });
      expect(eventsOf(attempt)).toEqual(['first_byte', 'first_chunk']);
      const firstChunkMs = 1000 * Number(attempt?.attributes['gen_ai.response.time_to_first_chunk']);
      const lasted = (span: ReceivedSpan | undefined) => (span?.endMs ?? 0) - (span?.startMs ?? 0);
      expect(lasted(attempt)).toBeGreaterThanOrEqual(firstChunkMs + 110);
      expect(lasted(root)).toBeGreaterThanOrEqual(lasted(attempt));
      expect(root?.attributes).toMatchObject({ 'gw.stream': true, 'gw.outcome': 'success' });
    });

    test('leaves its trace id on the log row and on its access line', async () => {
      const { traceId, headers } = clientTrace();
      const { gateway: block } = await chatOk(user.client, {}, headers);
      const root = server(await collector.trace(traceId, 2));
      const line = await eventually(() =>
        Promise.resolve(gateway.logs().find((entry) => entry['request_id'] === block.request_id)),
      );
      expect(line).toMatchObject({
        msg: 'chat',
        trace_id: traceId,
        span_id: root?.spanId,
        trace_flags: '01',
      });
    });
  });

  describe('a request that falls back', () => {
    test('has one span per vendor call, the failed ones in error, the request not', async () => {
      gateway.vendors.openai.script(failure(503));
      gateway.vendors.sarvam.script(failure(429, { 'retry-after': '7' }));
      const { traceId, headers } = clientTrace();
      await chatOk(user.client, {}, headers);
      const spans = await collector.trace(traceId, 4);
      expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam', 'anthropic']);
      const root = server(spans);
      expect(root?.status).toBe('UNSET');
      expect(root?.attributes['gw.attempts']).toBe(3);
      expect(attempts(spans)).toMatchObject([
        {
          status: 'ERROR',
          parentSpanId: root?.spanId,
          attributes: {
            'gen_ai.provider.name': 'openai',
            'http.response.status_code': 503,
            'error.type': 'upstream-failed',
            'gw.attempt.number': 1,
            'gw.attempt.outcome': 'failed',
          },
        },
        {
          status: 'ERROR',
          attributes: {
            'gen_ai.provider.name': 'sarvam',
            'http.response.status_code': 429,
            'error.type': 'rate-limited',
            'gw.attempt.number': 2,
            'gw.attempt.fallback_reason': 'upstream-failed',
            'gw.retry_after_ms': 7000,
          },
        },
        {
          status: 'UNSET',
          attributes: {
            'gen_ai.provider.name': 'anthropic',
            'gw.attempt.number': 3,
            'gw.attempt.outcome': 'served',
            'gw.attempt.fallback_reason': 'rate-limited',
          },
        },
      ]);
      for (const attempt of attempts(spans)) {
        expect(attempt.attributes).not.toHaveProperty('http.request.resend_count');
        expect(eventsOf(attempt)).toEqual(['first_byte']);
      }
    });

    test('tells in its own words of a call that got no answer', async () => {
      gateway.vendors.openai.script(reset);
      const { traceId, headers } = clientTrace();
      await chatOk(user.client, {}, headers);
      const [attempt] = attempts(await collector.trace(traceId, 3));
      expect(attempt?.attributes).toMatchObject({ 'error.type': 'unreachable' });
      expect(attempt?.events).toEqual([
        {
          name: 'exception',
          attributes: {
            'exception.type': 'unreachable',
            'exception.message': 'The connection was closed before the answer was complete.',
          },
        },
      ]);
    });

    test('names the candidates it passed over as events', async () => {
      const poor = await registerWithKeys(gateway.url, ['anthropic']);
      const { traceId, headers } = clientTrace();
      await chatOk(poor.client, {}, headers);
      const root = server(await collector.trace(traceId, 2));
      expect(root?.events).toMatchObject([
        {
          name: 'candidate.skipped',
          attributes: { 'gw.candidate.provider': 'openai', 'gw.skip.reason': 'no_key' },
        },
        {
          name: 'candidate.skipped',
          attributes: { 'gw.candidate.provider': 'sarvam', 'gw.skip.reason': 'no_key' },
        },
      ]);
    });

    test('is in error itself when nobody serves it', async () => {
      gateway.vendors.always(failure(500));
      const { traceId, headers } = clientTrace();
      expect((await chat(user.client, {}, headers)).status).toBe(502);
      const spans = await collector.trace(traceId, 4);
      expect(server(spans)).toMatchObject({
        status: 'ERROR',
        attributes: { 'http.response.status_code': 502, 'error.type': '502', 'gw.outcome': 'provider_error' },
      });
      expect(attempts(spans).map(({ status }) => status)).toEqual(['ERROR', 'ERROR', 'ERROR']);
    });

    test('is not in error for what the client did wrong', async () => {
      const { traceId, headers } = clientTrace();
      expect((await chat(user.client, { model: 'gw/nothing' }, headers)).status).toBe(422);
      const spans = await collector.trace(traceId, 1);
      expect(spans).toHaveLength(1);
      expect(spans[0]).toMatchObject({ status: 'UNSET', attributes: { 'http.response.status_code': 422 } });
    });

    test('marks a stream cut by its vendor', async () => {
      gateway.vendors.openai.script(tokensThen(2, 'reset'));
      const { traceId, headers } = clientTrace();
      const reader = await user.client.stream(chatPath, chatBody({ stream: true }), headers);
      await reader.text();
      const spans = await collector.trace(traceId, 2);
      expect(attempts(spans)).toMatchObject([
        { status: 'ERROR', attributes: { 'error.type': 'interrupted', 'gw.attempt.outcome': 'failed' } },
      ]);
      const [attempt] = attempts(spans);
      expect(eventsOf(attempt)).toEqual(['first_byte', 'first_chunk', 'exception']);
      expect(attempt?.events.at(-1)?.attributes).toEqual({ 'exception.type': 'interrupted' });
      expect(server(spans)).toMatchObject({ status: 'UNSET', attributes: { 'gw.outcome': 'incomplete' } });
    });
  });

  test('a client that leaves has an aborted attempt and a request with everything on it', async () => {
    gateway.vendors.always(hang);
    const { traceId, headers } = clientTrace();
    const leaving = new AbortController();
    const asked = user.client
      .request('POST', chatPath, { body: chatBody(), headers, signal: leaving.signal })
      .catch(() => null);
    await gateway.vendors.openai.received(0);
    leaving.abort();
    await asked;
    const spans = await collector.trace(traceId, 2);
    expect(attempts(spans)).toMatchObject([
      { status: 'UNSET', attributes: { 'gw.attempt.outcome': 'aborted', 'error.type': 'aborted' } },
    ]);
    expect(server(spans)).toMatchObject({
      status: 'UNSET',
      attributes: { 'http.response.status_code': 499, 'gw.outcome': 'client_closed', 'gw.attempts': 1 },
    });
  });

  test('a cache hit links to the span that stored the answer', async () => {
    const cached = { 'x-gateway-cache': 'true' };
    const body = { messages: [{ role: 'user', content: `cache me ${hex(4)}` }] };
    const first = clientTrace();
    const second = clientTrace();
    await chatOk(user.client, body, { ...cached, ...first.headers });
    const storing = server(await collector.trace(first.traceId, 2));
    expect(storing?.attributes['gw.cache.result']).toBe('miss');
    await chatOk(user.client, body, { ...cached, ...second.headers });
    const spans = await collector.trace(second.traceId, 1);
    expect(spans).toHaveLength(1);
    expect(spans[0]).toMatchObject({
      attributes: { 'gw.cache.result': 'hit', 'gw.attempts': 0, 'gw.cost_microusd': 0 },
      links: [{ traceId: first.traceId, spanId: storing?.spanId }],
    });
  });

  describe('the trace context', () => {
    const overrideOwn = { 'x-gateway-override-model': 'self_hosted:own-model' };

    test('never reaches a commercial vendor, nor does baggage', async () => {
      gateway.vendors.openai.script(failure(500));
      gateway.vendors.sarvam.script(failure(500));
      const { headers } = clientTrace();
      await chatOk(user.client, {}, { ...headers, baggage: 'who=me', tracestate: 'v=1' });
      expect(gateway.vendors.ledger()).toHaveLength(3);
      for (const seen of gateway.vendors.ledger())
        for (const name of ['traceparent', 'tracestate', 'baggage', 'b3'])
          expect(seen.headers).not.toHaveProperty(name);
    });

    test('reaches a self-hosted server when the setting says so, as the attempt’s own span', async () => {
      const { traceId, headers } = clientTrace();
      await chatOk(user.client, {}, { ...headers, ...overrideOwn, baggage: 'who=me' });
      const [attempt] = attempts(await collector.trace(traceId, 2));
      expect(ownServer.ledger[0]?.headers['traceparent']).toBe(`00-${traceId}-${attempt?.spanId}-01`);
      expect(ownServer.ledger[0]?.headers).not.toHaveProperty('baggage');
    });

    test('that says "not sampled" makes no span and is passed on so', async () => {
      const { traceId, headers } = clientTrace('00');
      await chatOk(user.client, {}, { ...headers, ...overrideOwn });
      const marker = clientTrace();
      await chatOk(user.client, {}, marker.headers);
      await collector.trace(marker.traceId, 2);
      expect(collector.spans.filter((span) => span.traceId === traceId)).toEqual([]);
      expect(ownServer.ledger[0]?.headers['traceparent']).toMatch(
        new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`),
      );
    });

    test.each([
      'garbage',
      '00-00000000000000000000000000000000-0000000000000000-01',
      'ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more',
    ])('that is malformed (%s) begins a new trace', async (traceparent) => {
      const { gateway: block } = await chatOk(user.client, {}, { traceparent });
      const root = await eventually(() =>
        Promise.resolve(
          collector.spans.find((span) => span.attributes['gw.request_id'] === block.request_id),
        ),
      );
      expect(root.parentSpanId).toBe('');
      expect(traceparent).not.toContain(root.traceId);
    });
  });

  test('a server that refuses stream_options shows as one attempt, sent twice', async () => {
    const other = await startFakeVendor();
    await addKey(user, {
      provider: 'self_hosted',
      api_key: 'x',
      base_url: other.url,
      declared_region: 'eu',
      label: 'old',
    });
    other.script(failure(400, {}, "Unrecognized request argument supplied: 'stream_options'"));
    const { traceId, headers } = clientTrace();
    await streamed(user.client, {}, { ...headers, 'x-gateway-override-model': 'self_hosted/old:m' });
    const spans = await collector.trace(traceId, 2);
    expect(other.ledger).toHaveLength(2);
    expect(attempts(spans)).toMatchObject([{ attributes: { 'http.request.resend_count': 1 } }]);
    await other.close();
  });

  test.each([false, true])(
    'no key is on a span whose vendor names its answer by it (stream: %s)',
    async (stream) => {
      // Without a prefix that would tell what it is.
      const secret = hex(32);
      const label = `echo-${stream}`;
      await addKey(user, {
        provider: 'self_hosted',
        api_key: secret,
        base_url: ownServer.url,
        declared_region: 'eu',
        label,
      });
      const named = /(?<="(?:id|model|finish_reason)":")[^"]+/g;
      ownServer.script((request) => {
        const reply = answer()(request);
        const body = [...reply.body].map((step) =>
          typeof step === 'string' ? step.replaceAll(named, secret) : step,
        );
        return { ...reply, body };
      });
      const { traceId, headers } = clientTrace();
      const override = { ...headers, 'x-gateway-override-model': `self_hosted/${label}:m` };
      if (stream) await streamed(user.client, {}, override);
      else await chatOk(user.client, {}, override);
      const [attempt] = attempts(await collector.trace(traceId, 2));
      expect(attempt?.attributes).toMatchObject({
        'gen_ai.response.id': '_other',
        'gen_ai.response.model': '_other',
      });
      expect(collector.bodies.join('\n')).not.toContain(secret);
    },
  );

  test('no prompt, answer or secret is on any span', async () => {
    gateway.vendors.openai.script(
      failure(400, {}, `bad prompt CANARY-PROMPT, key ${providerSecret(user, 'openai')}`),
    );
    gateway.vendors.sarvam.script(answer({ text: ['CANARY-ANSWER'] }));
    const { traceId, headers } = clientTrace();
    await chatOk(
      user.client,
      { messages: [{ role: 'user', content: 'CANARY-PROMPT', 'CANARY-FIELD': 1 }], user: 'CANARY-USER' },
      headers,
    );
    await collector.trace(traceId, 3);
    const sent = collector.bodies.join('\n');
    for (const secret of ['CANARY', user.key, user.email, user.id, 'sk-openai', 'own-secret'])
      expect(sent).not.toContain(secret);
  });
});
