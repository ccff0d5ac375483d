import { setTimeout as sleep } from 'node:timers/promises';
import { trace } from '@opentelemetry/api';
import type { NodeSDKConfiguration } from '@opentelemetry/sdk-node';
import { NodeSDK } from '@opentelemetry/sdk-node';
import type { TracingSettings } from '../tracing-settings.ts';
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
  const sdk = new NodeSDK(configuration);
  sdk.start();
  return {
    tracer: trace.getTracerProvider().getTracer('model-gateway', undefined, { schemaUrl }),
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
