import type { Attributes, AttributeValue, Link, SpanContext, SpanKind, SpanStatus } from '@opentelemetry/api';
import { SpanStatusCode } from '@opentelemetry/api';
import type { OpenSpan } from './tracing.ts';

/** As the SDK's `OTEL_SPAN_EVENT_COUNT_LIMIT` is by default. */
const maxEvents = 128;

export interface SpanEvent {
  readonly name: string;
  /** Wall clock. */
  readonly atMs: number;
  readonly attributes: Attributes | null;
}

/** What a span is begun with. */
export interface SpanStart {
  readonly name: string;
  readonly kind: SpanKind;
  readonly context: SpanContext;
  readonly parent: SpanContext | null;
  /** Wall clock; null: now. */
  readonly startedAtMs: number | null;
}

/**
 * A span of ours while it is recorded. The SDK's copies and checks what it is given as if it came from anybody, and
 * keeps it in dictionaries: 2 µs a span. This one takes what we give it as it stands.
 */
export class RecordedSpan implements OpenSpan {
  readonly name: string;
  readonly kind: SpanKind;
  readonly parent: SpanContext | null;
  /** Wall clock, in milliseconds. */
  readonly startedAtMs: number;
  /** 0 while it lasts; what is noted later is lost. */
  endedAtMs = 0;
  /** Of attributes; their values stand in `values`. */
  readonly keys: string[] = [];
  readonly values: AttributeValue[] = [];
  readonly events: SpanEvent[] = [];
  droppedEvents = 0;
  readonly links: Link[] = [];
  status: SpanStatusCode = SpanStatusCode.UNSET;
  readonly #context: SpanContext;
  /** Of the monotonic clock to the wall clock, as both were when the span began: a clock that is set moves no event. */
  readonly #offsetMs: number;
  readonly #ended: (span: RecordedSpan) => void;

  constructor({ name, kind, context, parent, startedAtMs }: SpanStart, ended: (span: RecordedSpan) => void) {
    const wallMs = Date.now();
    this.name = name;
    this.kind = kind;
    this.parent = parent;
    this.startedAtMs = startedAtMs ?? wallMs;
    this.#offsetMs = wallMs - performance.now();
    this.#context = context;
    this.#ended = ended;
  }

  spanContext(): SpanContext {
    return this.#context;
  }

  setAttribute(key: string, value: AttributeValue): void {
    if (this.endedAtMs !== 0) return;
    this.keys.push(key);
    this.values.push(value);
  }

  addEvent(name: string, attributes: Attributes | null = null): void {
    if (this.endedAtMs !== 0) return;
    // The last ones tell how it ended.
    if (this.events.length >= maxEvents) {
      this.events.shift();
      this.droppedEvents += 1;
    }
    this.events.push({ name, atMs: this.#nowMs(), attributes });
  }

  addLink(link: Link): void {
    if (this.endedAtMs === 0) this.links.push(link);
  }

  setStatus({ code }: SpanStatus): void {
    if (this.endedAtMs === 0) this.status = code;
  }

  end(): void {
    if (this.endedAtMs !== 0) return;
    this.endedAtMs = this.#nowMs();
    this.#ended(this);
  }

  #nowMs(): number {
    return performance.now() + this.#offsetMs;
  }
}
