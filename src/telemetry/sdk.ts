import { setTimeout as sleep } from 'node:timers/promises';
import { diag, ROOT_CONTEXT, SamplingDecision, trace } from '@opentelemetry/api';
import { getNumberFromEnv, getStringFromEnv, getStringListFromEnv } from '@opentelemetry/core';
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from '@opentelemetry/otlp-exporter-base/node-http';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import type { NodeSDKConfiguration } from '@opentelemetry/sdk-node';
import { NodeSDK } from '@opentelemetry/sdk-node';
import type { TracingSettings } from '../tracing-settings.ts';
import { readSampler } from './head-sampler.ts';
import { OwnSpans } from './own-spans.ts';
import { RandomIds } from './random-ids.ts';
import { SdkSpans } from './sdk-spans.ts';
import type { BatchLimits, SpanBatch } from './span-batches.ts';
import { SpanBatches } from './span-batches.ts';
import type { SpanOrigin } from './span-bytes.ts';
import { schemaUrl } from './span-names.ts';
import type { SpanMaker, Tracing } from './tracing.ts';

/** A collector that is gone or hangs delays the end of the process by no more than this. */
const flushLimitMs = 1_000;

/**
 * The OpenTelemetry SDK with the exporter, sampler, batching and resource that the standard `OTEL_*` variables
 * ask for. Import it only when there is somewhere to export to: it costs half a second and 50 MB.
 */
export async function startSdk(settings: TracingSettings): Promise<Tracing> {
  const { auto, serviceName } = settings;
  const ids = new RandomIds();
  const configuration: Partial<NodeSDKConfiguration> = {
    serviceName,
    instrumentations: auto ? await autoInstrumentations() : [],
    // Metrics are scraped and logs are printed: the SDK's own pipelines stay off.
    metricReaders: [],
    logRecordProcessors: [],
    // No global propagator: nothing but our own code may add a header to an upstream call.
    textMapPropagator: null,
    idGenerator: ids,
  };
  // Context is passed by hand; only auto-instrumentation needs a context manager.
  if (!auto) Object.assign(configuration, { contextManager: null });
  return auto || !isProtobufOverHttp() || areSpansLimited()
    ? withSdkSpans(configuration, ids, auto)
    : withOwnSpans(configuration, ids, settings.propagateTo.length > 0);
}

function withSdkSpans(configuration: Partial<NodeSDKConfiguration>, ids: RandomIds, auto: boolean): Tracing {
  const sdk = new NodeSDK(configuration);
  sdk.start();
  return closable(new SdkSpans(ownTracer(), ids, auto), () => sdk.shutdown());
}

/** The SDK tells what the resource is; its spans and its pipeline are not used. */
function withOwnSpans(
  configuration: Partial<NodeSDKConfiguration>,
  ids: RandomIds,
  isTold: boolean,
): Tracing {
  const sdk = new NodeSDK({ ...configuration, sampler: everything, spanProcessors: [nowhere] });
  sdk.start();
  const batches = protobufOverHttp(originOf(ownTracer()));
  const sampler = readSampler(
    getStringFromEnv('OTEL_TRACES_SAMPLER'),
    getNumberFromEnv('OTEL_TRACES_SAMPLER_ARG'),
    (message) => diag.error(message),
  );
  const spans = new OwnSpans(sampler, ids, isTold, (span) => batches.add(span));
  return closable(spans, () => Promise.all([batches.shutdown(), sdk.shutdown()]));
}

const ownTracer = () => trace.getTracerProvider().getTracer('model-gateway', undefined, { schemaUrl });

/** Of a span that nobody ends. */
function originOf(tracer: ReturnType<typeof ownTracer>): SpanOrigin {
  const span = tracer.startSpan('origin', {}, ROOT_CONTEXT) as unknown as ReadableSpan;
  return { resource: span.resource, scope: span.instrumentationScope };
}

const everything: NodeSDKConfiguration['sampler'] = {
  shouldSample: () => ({ decision: SamplingDecision.RECORD_AND_SAMPLED }),
  toString: () => 'everything',
};

type SpanProcessor = NonNullable<NodeSDKConfiguration['spanProcessors']>[number];
type ReadableSpan = Parameters<SpanProcessor['onEnd']>[0];

const nowhere: SpanProcessor = {
  onStart: () => undefined,
  onEnd: () => undefined,
  forceFlush: () => Promise.resolve(),
  shutdown: () => Promise.resolve(),
};

function closable(maker: SpanMaker, shutdown: () => Promise<unknown>): Tracing {
  return Object.assign(maker, {
    async close() {
      const flushed = shutdown().catch(() => undefined);
      await Promise.race([flushed, sleep(flushLimitMs, undefined, { ref: false })]);
    },
  });
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
function protobufOverHttp(origin: SpanOrigin): SpanBatches {
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
  return new SpanBatches(origin, delegate, readBatchLimits());
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

/** By one of the variables that end in `_LIMIT`; ours are not counted, nor are their values cut. */
function areSpansLimited(): boolean {
  const counts = [
    'ATTRIBUTE_COUNT',
    'EVENT_COUNT',
    'LINK_COUNT',
    'ATTRIBUTE_PER_EVENT_COUNT',
    'ATTRIBUTE_PER_LINK_COUNT',
  ];
  const limits = [...counts, 'ATTRIBUTE_VALUE_LENGTH'].map((limit) => `${limit}_LIMIT`);
  const names = limits.flatMap((limit) => [`OTEL_${limit}`, `OTEL_SPAN_${limit}`]);
  return names.some((name) => getStringFromEnv(name) !== undefined);
}
