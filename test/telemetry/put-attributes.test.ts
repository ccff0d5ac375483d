/** The short way for attributes of ours into the SDK's spans, beside the SDK's own. */
import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import {
  AlwaysOnSampler,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { expect, test } from 'vitest';
import type { PutAttributes } from '../../src/telemetry/put-attributes.ts';
import { putChecked, putUnchecked } from '../../src/telemetry/put-attributes.ts';
import { chatOk } from '../harness/gateway/chat.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { startOtlpReceiver } from '../harness/servers/otlp-receiver.ts';
import { closeAfterTest } from '../harness/servers/use-started.ts';

function exportedWith(put: PutAttributes) {
  const exporter = new InMemorySpanExporter();
  const processor = new SimpleSpanProcessor({ exporter });
  const provider = new TracerProvider({ sampler: new AlwaysOnSampler(), spanProcessors: [processor] });
  const span = provider.getTracer('test').startSpan('span', {}, ROOT_CONTEXT);
  put(span, { text: 'a', number: 1, list: ['x', 'y'] });
  put(span, { number: 2.5, flag: true });
  span.setAttribute('late', 'by the API');
  span.end();
  put(span, { 'after.the.end': true });
  return exporter
    .getFinishedSpans()
    .map(({ attributes, droppedAttributesCount }) => ({ attributes, droppedAttributesCount }));
}

test('is as good as its own', () => {
  const [exported] = exportedWith(putUnchecked);
  expect(exportedWith(putChecked)).toEqual([exported]);
  expect(exported?.attributes).toEqual({
    text: 'a',
    number: 2.5,
    list: ['x', 'y'],
    flag: true,
    late: 'by the API',
  });
});

test('leaves a span that is not recorded alone', () => {
  const span = trace.wrapSpanContext({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 });
  putUnchecked(span, { text: 'a' });
  expect(span).not.toHaveProperty('attributes');
});

test.each([
  ['OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT', { 'gen_ai.operation.name': 'ch', 'gen_ai.provider.name': 'op' }],
  ['OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT', { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai' }],
])('heeds %s', async (limit, attributes) => {
  const collector = closeAfterTest(await startOtlpReceiver());
  const gateway = await startForTest({ env: { ...collector.env, [limit]: '2' } });
  const user = await registerWithKeys(gateway.url, ['openai']);
  await chatOk(user.client);
  await gateway.stop();
  const attempt = collector.spans.find(({ kind }) => kind === 'CLIENT');
  expect(attempt?.attributes).toMatchObject(attributes);
  const count = Object.keys(attempt?.attributes ?? {}).length;
  expect(count === 2).toBe(limit.includes('COUNT'));
});
