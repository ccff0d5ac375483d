/** The limits of spans that the environment may set. */
import { expect, test } from 'vitest';
import { chatOk } from '../harness/gateway/chat.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import type { ReceivedSpan } from '../harness/servers/otlp-receiver.ts';
import { startOtlpReceiver } from '../harness/servers/otlp-receiver.ts';
import { closeAfterTest } from '../harness/servers/use-started.ts';

const ofKind = (kind: string) => (spans: readonly ReceivedSpan[]) =>
  spans.filter((span) => span.kind === kind);
const [requests, attempts] = [ofKind('SERVER'), ofKind('CLIENT')];

const operation = (spans: readonly ReceivedSpan[]) => attempts(spans)[0]?.attributes['gen_ai.operation.name'];
const mostAttributes = (spans: readonly ReceivedSpan[]) =>
  Math.max(...spans.map(({ attributes }) => Object.keys(attributes).length));
const eventCount = (spans: readonly ReceivedSpan[]) => spans.flatMap(({ events }) => events).length;
const attributesOfEvents = (spans: readonly ReceivedSpan[]) => {
  const events = spans.flatMap((span) => span.events);
  return Math.max(...events.map(({ attributes }) => Object.keys(attributes).length));
};
const linkCount = (spans: readonly ReceivedSpan[]) => requests(spans).flatMap(({ links }) => links).length;

type Told = (spans: readonly ReceivedSpan[]) => unknown;

test.each<[limit: string, value: string, told: Told, without: unknown, expected: unknown]>([
  ['OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT', '2', operation, 'chat', 'ch'],
  ['OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT', '2', operation, 'chat', 'ch'],
  ['OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT', '2', mostAttributes, expect.any(Number), 2],
  ['OTEL_ATTRIBUTE_COUNT_LIMIT', '2', mostAttributes, expect.any(Number), 2],
  ['OTEL_SPAN_EVENT_COUNT_LIMIT', '0', eventCount, expect.any(Number), 0],
  ['OTEL_SPAN_ATTRIBUTE_PER_EVENT_COUNT_LIMIT', '1', attributesOfEvents, 3, 1],
  ['OTEL_SPAN_LINK_COUNT_LIMIT', '0', linkCount, 1, 0],
])('%s=%s is heeded', async (limit, value, told, without, expected) => {
  const spansWith = async (limits: Record<string, string>) => {
    const collector = closeAfterTest(await startOtlpReceiver());
    const gateway = await startForTest({ env: { ...collector.env, ...limits } });
    const user = await registerWithKeys(gateway.url, ['anthropic']);
    for (let request = 0; request < 2; request += 1) {
      await chatOk(user.client, {}, { 'x-gateway-cache': 'true' });
    }
    await gateway.stop();
    return collector.spans;
  };
  const unlimited = told(await spansWith({}));
  expect(unlimited).toEqual(without);
  expect(unlimited).not.toEqual(expected);
  expect(told(await spansWith({ [limit]: value }))).toEqual(expected);
});
