import { setTimeout as sleep } from 'node:timers/promises';
import { context, trace } from '@opentelemetry/api';
import {
  getNumberFromEnv,
  getStringFromEnv,
  getStringListFromEnv,
  suppressTracing,
} from '@opentelemetry/core';
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from '@opentelemetry/otlp-exporter-base/node-http';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import type { NodeSDKConfiguration } from '@opentelemetry/sdk-node';
import { NodeSDK } from '@opentelemetry/sdk-node';
import type { TracingSettings } from '../tracing-settings.ts';
import { putChecked, putUnchecked } from './put-attributes.ts';
import { RandomIds } from './random-ids.ts';
import type { BatchLimits, SpanBatch } from './span-batches.ts';
import { SpanBatches } from './span-batches.ts';
import type { SpanProcessor } from './span-bytes.ts';
import { schemaUrl } from './span-names.ts';
import type { Tracing } from './tracing.ts';

/** A collector that is gone or hangs delays the end of the process by no more than this. */
const flushLimitMs = 1_000;

/**
 * The OpenTelemetry SDK with the exporter, sampler, batching and resource that the standard `OTEL_*` variables
 * ask for. Import it only when there is somewhere to export to: it costs half a second and 50 MB.
 */
export async function startSdk(settings: TracingSettings): Promise<Tracing> {
  const { auto, serviceName } = settings;
  const configuration: Partial<NodeSDKConfiguration> = {
    serviceName,
    instrumentations: auto ? await autoInstrumentations() : [],
    // Metrics are scraped and logs are printed: the SDK's own pipelines stay off.
    metricReaders: [],
    logRecordProcessors: [],
    // No global propagator: nothing but our own code may add a header to an upstream call.
    textMapPropagator: null,
  };
  // Context is passed by hand; only auto-instrumentation needs a context manager.
  if (!auto) Object.assign(configuration, { contextManager: null });
  configuration.idGenerator = new RandomIds();
  if (isProtobufOverHttp()) configuration.spanProcessors = [protobufOverHttp()];
  const sdk = new NodeSDK(configuration);
  sdk.start();
  return {
    tracer: trace.getTracerProvider().getTracer('model-gateway', undefined, { schemaUrl }),
    put: areAttributesLimited() ? putChecked : putUnchecked,
    auto,
    async close() {
      const flushed = sdk.shutdown().catch(() => undefined);
      await Promise.race([flushed, sleep(flushLimitMs, undefined, { ref: false })]);
    },
  };
}

async function autoInstrumentations(): Promise<NodeSDKConfiguration['instrumentations']> {
  const { createInstrumentations } = await import('./auto-instrumentation.ts');
  return createInstrumentations();
}

/** Spans go where they go by default. All else is the SDK's, what it does not know included. */
function isProtobufOverHttp(): boolean {
  const protocol =
    getStringFromEnv('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? getStringFromEnv('OTEL_EXPORTER_OTLP_PROTOCOL');
  const exporters = getStringListFromEnv('OTEL_TRACES_EXPORTER') ?? [];
  return (protocol ?? 'http/protobuf') === 'http/protobuf' && exporters.every((name) => name === 'otlp');
}

/**
 * What the SDK would make of the environment, down to the transport and its retries (its OTLPTraceExporter is these
 * calls), but for spans that are bytes already: see `span-bytes.ts` for what that saves.
 */
function protobufOverHttp(): SpanProcessor {
  const contentType = { 'Content-Type': 'application/x-protobuf' };
  const delegate = createOtlpHttpExportDelegate(
    convertLegacyHttpOptions({}, 'TRACES', 'v1/traces', contentType),
    {
      serializeRequest: (batch: SpanBatch) => batch.encode(),
      deserializeResponse: ProtobufTraceSerializer.deserializeResponse,
    },
    'otlp_http_span_exporter',
    { name: 'span', countItems: ({ count }) => count },
    undefined,
  );
  const quiet = suppressTracing(context.active());
  return new SpanBatches(
    {
      // No auto-instrumentation shall make spans of the export of spans.
      export: (batch, done) => context.with(quiet, () => delegate.export(batch, done)),
      shutdown: () => delegate.shutdown(),
    },
    readBatchLimits(),
  );
}

function readBatchLimits(): BatchLimits {
  const read = (name: string, byDefault: number): number => {
    const value = getNumberFromEnv(`OTEL_BSP_${name}`);
    return value !== undefined && value > 0 ? value : byDefault;
  };
  const maxQueueSize = read('MAX_QUEUE_SIZE', 2_048);
  return {
    maxQueueSize,
    maxExportBatchSize: Math.min(read('MAX_EXPORT_BATCH_SIZE', 512), maxQueueSize),
    scheduleDelayMs: read('SCHEDULE_DELAY', 5_000),
    exportTimeoutMs: read('EXPORT_TIMEOUT', 30_000),
  };
}

function areAttributesLimited(): boolean {
  const limits = ['ATTRIBUTE_COUNT_LIMIT', 'ATTRIBUTE_VALUE_LENGTH_LIMIT'];
  const names = limits.flatMap((limit) => [`OTEL_${limit}`, `OTEL_SPAN_${limit}`]);
  return names.some((name) => getStringFromEnv(name) !== undefined);
}
