/** What a request has of a trace that is not recorded: what its caller or a provider knows of it, else nothing. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { chatOk } from '../harness/gateway/chat.ts';
import { addKey } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { startOtlpReceiver } from '../harness/servers/otlp-receiver.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { startFakeVendor } from '../harness/vendors/fake-vendor.ts';

const never = { OTEL_TRACES_SAMPLER: 'parentbased_always_off' };
const toOwn = { 'x-gateway-override-model': 'self_hosted:own-model' };

function useNeverRecording(env: Readonly<Record<string, string>> = {}) {
  const collector = useServer(startOtlpReceiver);
  const ownServer = useServer(startFakeVendor);
  const gateway = useGateway(() => ({ env: { ...collector.env, ...never, ...env } }));
  return { collector, ownServer, gateway, user: useUser(gateway) };
}

const lineOf = (gateway: GatewayUnderTest, requestId: string) =>
  eventually(() => Promise.resolve(gateway.logs().find((entry) => entry['request_id'] === requestId)));

interface LogPage {
  readonly data: readonly { readonly id: number }[];
}

const idOf = (traceparent: unknown) => String(traceparent).split('-')[1];

describe.each([
  ['spans of our own', {}],
  ['the SDK’s', { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }],
])('with %s, a request that is not recorded', (_name, protocol) => {
  describe('of whose trace no provider is told', () => {
    const { collector, gateway, user } = useNeverRecording(protocol);

    test('has no trace, neither on its line nor in its row', async () => {
      const { gateway: block } = await chatOk(user.client);
      expect(await lineOf(gateway, block.request_id)).not.toHaveProperty('trace_id');
      const [listed] = await eventually(async () => {
        const { data } = (await user.client.get(`/v1/logs?request_id=${block.request_id}`)).json<LogPage>();
        return data.length > 0 ? data : undefined;
      });
      const row = (await user.client.get(`/v1/logs/${listed?.id}`)).json();
      expect(row).toMatchObject({ request_id: block.request_id, trace_id: null });
    });

    test('keeps the trace that its caller has', async () => {
      const traceId = randomBytes(16).toString('hex');
      for (const flags of ['00', '01']) {
        const traceparent = `00-${traceId}-${randomBytes(8).toString('hex')}-${flags}`;
        const { gateway: block } = await chatOk(user.client, {}, { traceparent });
        expect(await lineOf(gateway, block.request_id)).toMatchObject({
          trace_id: traceId,
          trace_flags: '00',
        });
      }
      expect(collector.spans).toEqual([]);
    });
  });

  describe('of whose trace a provider is told', () => {
    const { ownServer, gateway, user } = useNeverRecording({
      ...protocol,
      GW_TRACE_PROPAGATE_TO: 'self_hosted',
    });

    test('tells it that it is not recorded, and has the same trace on its line', async () => {
      const base = { provider: 'self_hosted', api_key: 'x', declared_region: 'eu' };
      await addKey(user, { ...base, base_url: ownServer.url });
      const { gateway: block } = await chatOk(user.client, {}, toOwn);
      const traceparent = ownServer.ledger[0]?.headers['traceparent'];
      expect(traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
      const line = await lineOf(gateway, block.request_id);
      expect(line).toMatchObject({ trace_id: idOf(traceparent), trace_flags: '00' });
    });
  });
});
