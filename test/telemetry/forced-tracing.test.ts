/** Who can have a request recorded: we, by our own share, and known callers behind a proxy of the operator's. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { chat, chatOk } from '../harness/gateway/chat.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { startForTest, useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import type { OtlpReceiver } from '../harness/servers/otlp-receiver.ts';
import { startOtlpReceiver } from '../harness/servers/otlp-receiver.ts';
import { closeAfterTest, useServer } from '../harness/servers/use-started.ts';

const nothing = { OTEL_TRACES_SAMPLER_ARG: '0' };
const samplers = {
  follow: { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', ...nothing },
  ratio: { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.0001' },
  all: { OTEL_TRACES_SAMPLER: 'parentbased_always_on' },
};

interface Traced {
  readonly collector: OtlpReceiver;
  readonly gateway: GatewayUnderTest;
  readonly user: User;
}

function useTraced(env: Readonly<Record<string, string>>): Traced {
  const collector = useServer(startOtlpReceiver);
  const gateway = useGateway(() => ({ env: { ...collector.env, ...env } }));
  return { collector, gateway, user: useUser(gateway, ['openai']) };
}

/** Waits until the process has ended, which exports what there is. */
async function ended({ gateway }: Traced): Promise<void> {
  gateway.process.kill('SIGTERM');
  await gateway.exited;
}

/** `00…` is below the threshold of every ratio: whoever may choose it, chooses to be sampled. */
function wish(lowest = false): { traceId: string; headers: Record<string, string> } {
  const traceId = lowest ? `${'0'.repeat(31)}1` : randomBytes(16).toString('hex');
  return { traceId, headers: { traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-01` } };
}

/** Every way to come without being known. */
async function ask({ gateway, user }: Traced, headers: Record<string, string>): Promise<void> {
  const stranger = httpClient(gateway.url);
  const malformed = { ...headers, authorization: 'Bearer nobody' };
  await stranger.get('/v1/keys', headers);
  await stranger.get('/v1/keys', malformed);
  await stranger.get('/nowhere', headers);
  await stranger.request('PUT', '/v1/users', { headers });
  await stranger.post('/v1/users', { email: 'none' }, headers);
  await stranger.post('/v1/chat/completions', {}, malformed);
  await httpClient(gateway.url, `${user.key}x`).get('/v1/models', headers);
}

describe.each([
  ['parentbased_traceidratio', samplers.follow],
  ['traceidratio', samplers.ratio],
])('without a trusted proxy, sampler %s', (_name, sampler) => {
  const traced = useTraced(sampler);

  test('neither strangers nor known callers can have themselves recorded', async () => {
    for (const lowest of [false, true]) {
      const { headers } = wish(lowest);
      await ask(traced, headers);
      await chatOk(traced.user.client, {}, headers);
    }
    await ended(traced);
    expect(traced.collector.spans).toEqual([]);
  });
});

describe('behind a trusted proxy', () => {
  const traced = useTraced({ ...samplers.follow, GW_TRUSTED_PROXY_HOPS: '1' });

  test('a known caller’s wish is granted, below the caller’s span and from the beginning; a stranger’s is not', async () => {
    const ofStranger = wish();
    await ask(traced, ofStranger.headers);
    const ofCaller = wish();
    const beganMs = Date.now();
    const answer = await chatOk(traced.user.client, {}, ofCaller.headers);
    const spans = await traced.collector.trace(ofCaller.traceId, 2);
    const root = spans.find(({ kind }) => kind === 'SERVER');
    expect(root).toMatchObject({
      name: 'POST /v1/chat/completions',
      parentSpanId: ofCaller.headers['traceparent']?.split('-')[2],
      attributes: { 'http.response.status_code': 200, 'gw.request_id': answer.gateway.request_id },
    });
    expect(spans.find(({ kind }) => kind === 'CLIENT')?.parentSpanId).toBe(root?.spanId);
    expect(root?.startMs).toBeGreaterThanOrEqual(beganMs - 5);
    // A known caller's refused request is a request too.
    const refused = wish();
    expect((await chat(traced.user.client, { messages: 'none' }, refused.headers)).status).toBe(422);
    await traced.collector.trace(refused.traceId, 1);
    await ended(traced);
    expect(traced.collector.spans.filter(({ traceId }) => traceId === ofStranger.traceId)).toEqual([]);
  });
});

test('our own share is recorded, strangers’ requests too, in the trace that they name', async () => {
  const collector = closeAfterTest(await startOtlpReceiver());
  const gateway = await startForTest({ env: { ...collector.env, ...samplers.all } });
  const { traceId, headers } = wish();
  await httpClient(gateway.url).get('/v1/keys', headers);
  const [span] = await collector.trace(traceId, 1);
  expect(span?.attributes['http.response.status_code']).toBe(401);
});
