/** The spans of a request one to one with what the fake vendors saw of it, however it ended. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { chat, chatBody, chatOk, chatPath, streamed } from '../harness/gateway/chat.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { startForTest, useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';
import type { ReceivedSpan } from '../harness/servers/otlp-receiver.ts';
import { startOtlpReceiver } from '../harness/servers/otlp-receiver.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { failure, hang, tokensThen } from '../harness/vendors/vendor-plans.ts';

/** Two processes read one wall clock, each with an origin of its own. */
const clockSlackMs = 35;

const collector = useServer(startOtlpReceiver);
const gateway = useGateway(() => ({ env: collector.env }));
const user = useUser(gateway);

type Headers = Readonly<Record<string, string>>;

const traceOf = (): { traceId: string; headers: Headers } => {
  const traceId = randomBytes(16).toString('hex');
  return { traceId, headers: { traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-01` } };
};

/** Sends a request and leaves as soon as the first vendor has it. */
async function leave(headers: Headers): Promise<void> {
  const leaving = new AbortController();
  const options = { body: chatBody({ stream: true }), headers, signal: leaving.signal };
  const asked = user.client.request('POST', chatPath, options).catch(() => null);
  await gateway.vendors.openai.received(0);
  leaving.abort();
  await asked;
}

/** What the request's span and those of its attempts must say. */
interface Story {
  readonly outcome: string;
  readonly status: number;
  readonly calls: readonly string[];
  readonly ends: readonly string[];
}

/** Every vendor call has its span and every span its call: parent, order, target, time. */
function expectOneToOne(
  spans: readonly ReceivedSpan[],
  { vendors }: Pick<GatewayUnderTest, 'vendors'>,
  story: Story,
): void {
  const [root, ...others] = spans.filter((span) => span.kind === 'SERVER');
  expect(others).toEqual([]);
  expect(root?.attributes).toMatchObject({
    'gw.outcome': story.outcome,
    'gw.attempts': story.calls.length,
    'http.response.status_code': story.status,
  });
  const attempts = spans
    .filter((span) => span.kind === 'CLIENT')
    .sort((a, b) => Number(a.attributes['gw.attempt.number']) - Number(b.attributes['gw.attempt.number']));
  expect(spans).toHaveLength(1 + attempts.length);
  expect(vendors.calls()).toEqual(story.calls);
  expect(attempts.map((span) => span.attributes['gw.attempt.outcome'])).toEqual(story.ends);
  const ledger = vendors.ledger();
  expect(attempts).toHaveLength(ledger.length);
  for (const [index, span] of attempts.entries()) {
    const entry = ledger[index];
    const name = vendors.calls()[index] ?? 'openai';
    expect(span).toMatchObject({
      name: `chat ${entry?.body['model']}`,
      parentSpanId: root?.spanId,
      attributes: {
        'gen_ai.provider.name': name,
        'gen_ai.request.model': entry?.body['model'],
        'gen_ai.request.stream': entry?.stream,
        'server.port': Number(new URL(vendors[name].url).port),
        'gw.attempt.number': index + 1,
      },
    });
    const receivedMs = performance.timeOrigin + (entry?.receivedAtMs ?? 0);
    expectInTime(span.startMs - receivedMs, clockSlackMs);
    expectInTime(receivedMs - span.endMs, clockSlackMs);
    // Spans begin at a whole millisecond and last for parts of one.
    expect(span.startMs + 1).toBeGreaterThan(attempts[index - 1]?.endMs ?? root?.startMs ?? 0);
    expect(span.endMs).toBeLessThan((root?.endMs ?? 0) + 1);
  }
}

const all = ['openai', 'sarvam', 'anthropic'];

test.each<[name: string, tell: (headers: Headers) => Promise<unknown>, story: Story]>([
  [
    'an answer',
    (headers) => chatOk(user.client, {}, headers),
    { outcome: 'success', status: 200, calls: ['openai'], ends: ['served'] },
  ],
  [
    'a stream',
    (headers) => streamed(user.client, {}, headers),
    { outcome: 'success', status: 200, calls: ['openai'], ends: ['served'] },
  ],
  [
    'a fallback',
    (headers) => {
      gateway.vendors.openai.script(failure(503));
      gateway.vendors.sarvam.script(failure(429));
      return streamed(user.client, {}, headers);
    },
    { outcome: 'success', status: 200, calls: all, ends: ['failed', 'failed', 'served'] },
  ],
  [
    'a request that nobody serves',
    (headers) => {
      gateway.vendors.always(failure(500));
      return chat(user.client, {}, headers);
    },
    { outcome: 'provider_error', status: 502, calls: all, ends: ['failed', 'failed', 'failed'] },
  ],
  [
    'a stream that its vendor cuts',
    async (headers) => {
      gateway.vendors.openai.script(tokensThen(2, 'reset'));
      await (await user.client.stream(chatPath, chatBody({ stream: true }), headers)).text();
    },
    { outcome: 'incomplete', status: 200, calls: ['openai'], ends: ['failed'] },
  ],
  [
    'a cache hit',
    async (headers) => {
      const cached = { 'x-gateway-cache': 'true' };
      await chatOk(user.client, {}, cached);
      gateway.vendors.clear();
      await chatOk(user.client, {}, { ...cached, ...headers });
    },
    { outcome: 'success', status: 200, calls: [], ends: [] },
  ],
  [
    'a client that leaves',
    (headers) => {
      gateway.vendors.always(hang);
      return leave(headers);
    },
    { outcome: 'client_closed', status: 499, calls: ['openai'], ends: ['aborted'] },
  ],
])('%s', async (_name, tell, story) => {
  const { traceId, headers } = traceOf();
  await tell(headers);
  expectOneToOne(await collector.trace(traceId, 1 + story.calls.length), gateway, story);
});

test('a stream that a drain cuts', async () => {
  const draining = await startForTest({ env: { ...collector.env, GW_DRAIN_SECONDS: '0.2' } });
  const { client } = await registerWithKeys(draining.url);
  const cut = traceOf();
  draining.vendors.openai.script(tokensThen(2, 'hang'));
  const reader = await client.stream(chatPath, chatBody({ stream: true }), cut.headers);
  await reader.next();
  const exited = draining.stop();
  expect(await reader.text()).toContain('"draining"');
  expect(await exited).toBe(0);
  expectOneToOne(await collector.trace(cut.traceId, 2), draining, {
    outcome: 'incomplete',
    status: 200,
    calls: ['openai'],
    ends: ['aborted'],
  });
});

test('a drain before the first token', async () => {
  const draining = await startForTest({ env: { ...collector.env, GW_DRAIN_SECONDS: '0.2' } });
  const { client } = await registerWithKeys(draining.url);
  const { traceId, headers } = traceOf();
  draining.vendors.openai.script(hang);
  const asked = chat(client, {}, headers);
  await draining.vendors.openai.received(0);
  const exited = draining.stop();
  expect((await asked).status).toBe(503);
  expect(await exited).toBe(0);
  expectOneToOne(await collector.trace(traceId, 2), draining, {
    outcome: 'service_unavailable_error',
    status: 503,
    calls: ['openai'],
    ends: ['aborted'],
  });
});
