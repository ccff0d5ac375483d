import type {
  Attributes,
  AttributeValue,
  DiagLogger,
  Link,
  SpanContext,
  SpanStatus,
} from '@opentelemetry/api';
import type { TracingSettings } from '../tracing-settings.ts';

/** A span while it lasts: ours, the SDK's, or one that is not recorded and notes nothing. */
export interface OpenSpan {
  spanContext(): SpanContext;
  /** To be called once for each key. */
  setAttribute(key: string, value: AttributeValue): unknown;
  addEvent(name: string, attributes?: Attributes): unknown;
  addLink(link: Link): unknown;
  setStatus(status: SpanStatus): unknown;
  end(): void;
}

export interface RequestStart {
  /** It is decided that the request is recorded. The SDK's sampler is asked all the same. */
  readonly isDecided?: true;
  /** Wall clock; now by default. */
  readonly startedAtMs?: number;
}

/** What spans of ours are made with. */
export interface SpanMaker {
  /** True when auto-instrumentation looks for the active span, be it one that is not recorded. */
  readonly auto: boolean;
  /** Some provider is sent the trace of each request, recorded or not. */
  readonly isTold: boolean;
  /** The SERVER span of a request below its caller's, as the sampler decides. */
  startRequest(name: string, caller: SpanContext, start?: RequestStart): OpenSpan;
  /** The same of a request without a caller. Null: it is not recorded, and nobody asks for its ids. */
  startTrace(name: string): OpenSpan | null;
  /** The CLIENT span of an attempt below the span of a request that is recorded. */
  startAttempt(name: string, request: SpanContext): OpenSpan;
  newSpanId(): string;
}

export interface Tracing extends SpanMaker {
  /** Who hears what OpenTelemetry warns of from now on. */
  listen(listener: DiagLogger): void;
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
