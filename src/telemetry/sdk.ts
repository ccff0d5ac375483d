import { setTimeout as sleep } from 'node:timers/promises';
import type { DiagLogger, Span, Tracer } from '@opentelemetry/api';
import { context, DiagLogLevel, diag, ROOT_CONTEXT, SamplingDecision, trace } from '@opentelemetry/api';
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
import { HeadSampler } from './head-sampler.ts';
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
 * Tracing as the standard `OTEL_*` variables ask for it. Where spans go as protobuf over HTTP, which is the default,
 * they are ours, and the SDK knows the resource and has the transport; else all of it is the SDK's. Import it only when
 * there is somewhere to export to: it costs half a second and 50 MB.
 */
export async function startSdk(settings: TracingSettings): Promise<Tracing> {
  const { auto, serviceName } = settings;
  const ids = new RandomIds();
  const isTold = settings.propagateTo.length > 0;
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
  const isOurs = !auto && isProtobufOverHttp() && !areSpansLimited();
  const sdk = new NodeSDK(
    isOurs ? { ...configuration, sampler: originAlone, spanProcessors: [nowhere] } : configuration,
  );
  sdk.start();
  const tracer = trace.getTracerProvider().getTracer('model-gateway', undefined, { schemaUrl });
  const origin = isOurs ? originOf(tracer) : null;
  if (origin === null) return closing(new SdkSpans(tracer, ids, isTold, auto), () => sdk.shutdown());
  const batches = protobufOverHttp(origin);
  const spans = new OwnSpans(new HeadSampler(settings.sampler), ids, isTold, (span) => batches.add(span));
  return closing(spans, () => Promise.all([batches.shutdown(), sdk.shutdown()]));
}

function closing(maker: SpanMaker, shutdown: () => Promise<unknown>): Tracing {
  return Object.assign(maker, {
    listen(listener: DiagLogger) {
      // Else they go to the console, as that variable asks.
      if (getStringFromEnv('OTEL_LOG_LEVEL') !== undefined) return;
      diag.setLogger(listener, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
    },
    async close() {
      const flushed = shutdown().catch(() => undefined);
      await Promise.race([flushed, sleep(flushLimitMs, undefined, { ref: false })]);
    },
  });
}

type SpanProcessor = NonNullable<NodeSDKConfiguration['spanProcessors']>[number];
type ReadableSpan = Parameters<SpanProcessor['onEnd']>[0];

const originName = 'origin of spans';

/** Read from a span that nobody ends. Null: somebody registered a provider of theirs before us, and it records none. */
function originOf(tracer: Tracer): SpanOrigin | null {
  const span: Span & Partial<ReadableSpan> = tracer.startSpan(originName, {}, ROOT_CONTEXT);
  const { resource, instrumentationScope: scope } = span;
  return resource === undefined || scope === undefined ? null : { resource, scope };
}

/** Of other code's spans, which would go nowhere, none is recorded. */
const originAlone: NodeSDKConfiguration['sampler'] = {
  shouldSample: (_context, _traceId, name) => ({
    decision: name === originName ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD,
  }),
  toString: () => originName,
};

const nowhere: SpanProcessor = {
  onStart: () => undefined,
  onEnd: () => undefined,
  forceFlush: () => Promise.resolve(),
  shutdown: () => Promise.resolve(),
};

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
  const quiet = suppressTracing(context.active());
  return new SpanBatches(
    origin,
    {
      // No instrumentation that somebody has loaded shall make spans of the export of spans.
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

/** By one of the variables that the SDK reads them from. Of ours no attribute is counted, and no value cut. */
const limitVariables = [
  'OTEL_ATTRIBUTE_COUNT_LIMIT',
  'OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT',
  'OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT',
  'OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT',
  'OTEL_SPAN_EVENT_COUNT_LIMIT',
  'OTEL_SPAN_LINK_COUNT_LIMIT',
  'OTEL_SPAN_ATTRIBUTE_PER_EVENT_COUNT_LIMIT',
  'OTEL_SPAN_ATTRIBUTE_PER_LINK_COUNT_LIMIT',
];

const areSpansLimited = (): boolean => limitVariables.some((name) => getStringFromEnv(name) !== undefined);
