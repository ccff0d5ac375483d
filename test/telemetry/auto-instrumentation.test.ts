/** The bundle of auto-instrumentations: what it adds to the spans of our own, and what it must not. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { expect, test } from 'vitest';
import { chatOk, streamed } from '../harness/gateway/chat.ts';
import { providerSecret, registerWithKeys } from '../harness/gateway/register.ts';
import { startForTest, useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';
import type { ReceivedSpan } from '../harness/servers/otlp-receiver.ts';
import { startOtlpReceiver } from '../harness/servers/otlp-receiver.ts';
import { redisUrl } from '../harness/servers/redis.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { answer, failure, reset } from '../harness/vendors/vendor-plans.ts';

/** The last flush may take a second, the rest of the stop another. */
const stopLimitMs = 1_500;

const traceOf = () => {
  const traceId = randomBytes(16).toString('hex');
  return { traceId, headers: { traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-01` } };
};

const collector = useServer(startOtlpReceiver);
const gateway = useGateway(() => ({ env: { ...collector.env, GW_OTEL_AUTO: '1' }, redisUrl: redisUrl() }));
const user = useUser(gateway);

/** The spans of a trace once the store spans of these names are there, and every parent with its child. */
const wholeTrace = (traceId: string, names: readonly RegExp[]) =>
  eventually(async () => {
    const seen = await collector.trace(traceId, 1);
    const ids = new Set(seen.map((span) => span.spanId));
    const whole = seen.every((span) => span.kind === 'SERVER' || ids.has(span.parentSpanId));
    const all = names.every((name) => seen.some((span) => name.test(span.name)));
    return whole && all ? seen : undefined;
  });

/** Calls to vendors, whoever made a span of them. */
const vendorSpans = (spans: readonly ReceivedSpan[]) => {
  const ports = Object.values(gateway.vendors.env).map((url) => Number(new URL(url).port));
  return spans.filter((span) => ports.includes(Number(span.attributes['server.port'])));
};

test('adds spans of Postgres and Redis below the request', async () => {
  const { traceId, headers } = traceOf();
  const { client } = await registerWithKeys(gateway.url, ['openai']);
  await chatOk(
    client,
    { messages: [{ role: 'user', content: traceId }] },
    { ...headers, 'x-gateway-cache': 'true' },
  );
  const spans = await wholeTrace(traceId, [/^pg\.query/, /^getrange/, /^eval(sha)?$/]);
  const roots = spans.filter((span) => span.kind === 'SERVER');
  expect(roots).toHaveLength(1);
  const look = spans.find((span) => span.name === 'getrange');
  expect(look).toMatchObject({ kind: 'CLIENT', parentSpanId: roots[0]?.spanId });
  const query = spans.find((span) => span.name.startsWith('pg.query:SELECT'));
  expect(query?.kind).toBe('CLIENT');
  expect(vendorSpans(spans).map((span) => span.name)).toEqual(['chat gpt-test']);
  expect(gateway.vendors.openai.ledger.at(-1)?.headers).not.toHaveProperty('traceparent');
});

test('doubles no span of an attempt', async () => {
  gateway.vendors.clear();
  gateway.vendors.openai.script(failure(503));
  gateway.vendors.sarvam.script(reset);
  const { traceId, headers } = traceOf();
  await streamed(user.client, {}, headers);
  const spans = await wholeTrace(traceId, [/claude-test/]);
  expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam', 'anthropic']);
  const chats = vendorSpans(spans).sort((a, b) => a.startMs - b.startMs);
  expect(chats.map((span) => span.attributes['gen_ai.provider.name'])).toEqual(gateway.vendors.calls());
  expect(chats.map((span) => span.kind)).toEqual(['CLIENT', 'CLIENT', 'CLIENT']);
});

test('records neither parameters nor arguments, keys nor prompts', async () => {
  const { traceId, headers } = traceOf();
  const messages = [{ role: 'user', content: `CANARY-PROMPT ${traceId}` }];
  gateway.vendors.clear();
  gateway.vendors.openai.script(answer({ text: ['CANARY-ANSWER'] }));
  await chatOk(user.client, { messages }, { ...headers, 'x-gateway-cache': 'true' });
  await wholeTrace(traceId, [/^eval(sha)?$/]);
  const text = collector.bodies.join();
  expect(text).toContain('provider_keys');
  const secrets = [user.id, user.key, user.email, providerSecret(user, 'openai'), 'CANARY', 'gw:answer:'];
  for (const secret of secrets) expect(text).not.toContain(secret);
});

test('puts the trace on every line that is logged for a request', async () => {
  const database = new pg.Client(gateway.database.url);
  await database.connect();
  await database.query('ALTER TABLE provider_keys RENAME COLUMN label TO label_gone');
  const { traceId, headers } = traceOf();
  const listed = await user.client.get('/v1/keys', headers);
  await database.query('ALTER TABLE provider_keys RENAME COLUMN label_gone TO label');
  await database.end();
  expect(listed.status).toBe(500);
  const line = await eventually(() =>
    Promise.resolve(gateway.logs().find((entry) => entry['msg'] === 'unhandled error')),
  );
  expect(line).toMatchObject({ trace_id: traceId, trace_flags: '01' });
});

test('does not keep the process from ending', async () => {
  const other = await startForTest({ env: { ...collector.env, GW_OTEL_AUTO: '1' }, redisUrl: redisUrl() });
  const { client } = await registerWithKeys(other.url);
  await Promise.all([chatOk(client), streamed(client)]);
  const stoppingAtMs = performance.now();
  expect(await other.stop()).toBe(0);
  expectInTime(performance.now() - stoppingAtMs, stopLimitMs);
});
