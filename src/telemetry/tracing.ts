import type { Tracer } from '@opentelemetry/api';
import type { TracingSettings } from '../tracing-settings.ts';
import type { PutAttributes } from './put-attributes.ts';

/** What spans of ours are made with. */
export interface SpanMaker {
  readonly tracer: Tracer;
  readonly put: PutAttributes;
  /** True when auto-instrumentation looks for the active span, be it one that is not recorded. */
  readonly auto: boolean;
}

export interface Tracing extends SpanMaker {
  /** Exports what is left; never takes longer than `flushLimitMs`, never rejects. */
  close(): Promise<void>;
}

/**
 * Null unless an exporter is configured: then nothing of the SDK is loaded. With the auto-instrumentation
 * bundle it must run before the modules that it patches are imported.
 */
export async function startTracing(settings: TracingSettings): Promise<Tracing | null> {
  if (!settings.enabled) return null;
  const { startSdk } = await import('./sdk.ts');
  return startSdk(settings);
}
