/** The limits of spans that the environment may set. */
import { expect, test } from 'vitest';
import { chatOk } from '../harness/gateway/chat.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import type { ReceivedSpan } from '../harness/servers/otlp-receiver.ts';
import { startOtlpReceiver } from '../harness/servers/otlp-receiver.ts';
import { closeAfterTest } from '../harness/servers/use-started.ts';

const operation = (span: ReceivedSpan) => span.attributes['gen_ai.operation.name'];
const attributeCount = (span: ReceivedSpan) => Object.keys(span.attributes).length;
const eventCount = (span: ReceivedSpan) => span.events.length;

test.each<[limit: string, told: (span: ReceivedSpan) => unknown, expected: unknown]>([
  ['OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT', operation, 'ch'],
  ['OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT', operation, 'ch'],
  ['OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT', attributeCount, 2],
  ['OTEL_ATTRIBUTE_COUNT_LIMIT', attributeCount, 2],
  ['OTEL_SPAN_EVENT_COUNT_LIMIT', eventCount, 0],
])('%s is heeded', async (limit, told, expected) => {
  const collector = closeAfterTest(await startOtlpReceiver());
  const value = limit.includes('EVENT') ? '0' : '2';
  const gateway = await startForTest({ env: { ...collector.env, [limit]: value } });
  const user = await registerWithKeys(gateway.url, ['openai']);
  await chatOk(user.client);
  await gateway.stop();
  const attempt = collector.spans.find(({ kind }) => kind === 'CLIENT');
  expect(attempt && told(attempt)).toEqual(expected);
});
