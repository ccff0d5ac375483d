/** What tracing costs when its collector is sick, and when it is sampled away. */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chatOk, streamed } from '../harness/gateway/chat.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';
import { closedPort } from '../harness/servers/dead-ports.ts';
import { startOtlpReceiver } from '../harness/servers/otlp-receiver.ts';
import { closeAfterTest } from '../harness/servers/use-started.ts';

/** A request through fake vendors takes a few milliseconds; a wait on a collector takes seconds. */
const feltMs = 1_000;
/** The last flush may take a second, the rest of the stop another. */
const stopLimitMs = 1_500;

const traceOf = () => {
  const traceId = randomBytes(16).toString('hex');
  return { traceId, headers: { traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-01` } };
};

describe('a collector that', () => {
  async function proveUnfelt(gateway: GatewayUnderTest): Promise<void> {
    const user = await registerWithKeys(gateway.url);
    for (let round = 0; round < 20; round += 1) {
      const startedAtMs = performance.now();
      await Promise.all([chatOk(user.client), streamed(user.client)]);
      expectInTime(performance.now() - startedAtMs, feltMs);
    }
    const stoppingAtMs = performance.now();
    expect(await gateway.stop()).toBe(0);
    expectInTime(performance.now() - stoppingAtMs, stopLimitMs);
  }

  test('hangs is not felt, and delays the end by a second at most', async () => {
    const collector = closeAfterTest(await startOtlpReceiver());
    collector.hang();
    const gateway = await startForTest({ env: collector.env });
    await proveUnfelt(gateway);
    expect(collector.held()).toBeGreaterThan(0);
    expect(collector.spans).toEqual([]);
  });

  test('is not there is not felt either', async () => {
    await proveUnfelt(await startForTest({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: await closedPort() } }));
  });

  test.each(['http/protobuf', 'http/json'])(
    'takes no spans by %s is told of, in one line',
    async (protocol) => {
      const collector = closeAfterTest(await startOtlpReceiver());
      collector.refuse();
      const env = { ...collector.env, OTEL_EXPORTER_OTLP_PROTOCOL: protocol, OTEL_BSP_SCHEDULE_DELAY: '1' };
      const gateway = await startForTest({ env });
      const user = await registerWithKeys(gateway.url);
      while (collector.refused() < 3) await chatOk(user.client);
      await gateway.stop();
      const told = gateway.logs().filter(({ msg }) => /^traces have trouble/.test(String(msg)));
      expect(told).toMatchObject([{ level: 'warn', reason: expect.stringMatching(/Unauthorized|401/) }]);
    },
  );

  test('is there gets what is left at the end', async () => {
    const collector = closeAfterTest(await startOtlpReceiver());
    const gateway = await startForTest({ env: { ...collector.env, OTEL_BSP_SCHEDULE_DELAY: '60000' } });
    const user = await registerWithKeys(gateway.url);
    const { traceId, headers } = traceOf();
    await chatOk(user.client, {}, headers);
    expect(collector.spans).toEqual([]);
    expect(await gateway.stop()).toBe(0);
    expect(collector.spans.filter((span) => span.traceId === traceId)).toHaveLength(2);
  });
});

describe('sampling', () => {
  test('by ratio leaves requests of their own out, and follows callers behind our proxy who sample', async () => {
    const collector = closeAfterTest(await startOtlpReceiver());
    const gateway = await startForTest({
      env: {
        ...collector.env,
        OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
        OTEL_TRACES_SAMPLER_ARG: '0',
        GW_TRUSTED_PROXY_HOPS: '1',
      },
    });
    const user = await registerWithKeys(gateway.url);
    const { gateway: alone } = await chatOk(user.client);
    const { traceId, headers } = traceOf();
    await chatOk(user.client, {}, headers);
    expect(await collector.trace(traceId, 2)).toHaveLength(2);
    expect(collector.spans).toHaveLength(2);
    const line = await eventually(() =>
      Promise.resolve(gateway.logs().find((entry) => entry['request_id'] === alone.request_id)),
    );
    expect(line).not.toHaveProperty('trace_id');
  });

  test('by ratio alone lets no caller force it', async () => {
    const collector = closeAfterTest(await startOtlpReceiver());
    const gateway = await startForTest({
      env: {
        ...collector.env,
        OTEL_TRACES_SAMPLER: 'traceidratio',
        OTEL_TRACES_SAMPLER_ARG: '0',
      },
    });
    const user = await registerWithKeys(gateway.url);
    await chatOk(user.client, {}, traceOf().headers);
    await gateway.stop();
    expect(collector.spans).toEqual([]);
  });
});

test('nothing of the SDK is imported unless tracing is on', () => {
  const folder = join(import.meta.dirname, '../../src');
  const importers = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .filter((path) =>
      /^import (?!type)[^;]*from '(@opentelemetry\/(?!api')|import-in-the-middle|\.\/sdk\.ts|\.\/auto-instr)/m.test(
        readFileSync(join(folder, path), 'utf8'),
      ),
    );
  expect(importers.sort()).toEqual(['telemetry/auto-instrumentation.ts', 'telemetry/sdk.ts']);
});
