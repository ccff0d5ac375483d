import { diag } from '@opentelemetry/api';
import { ProtobufBytes } from './protobuf-bytes.ts';
import type { RecordedSpan } from './recorded-span.ts';
import type { SpanOrigin } from './span-bytes.ts';
import { exportRequest, writeSpan } from './span-bytes.ts';

/** The `OTEL_BSP_*` variables; the defaults are those of the specification. */
export interface BatchLimits {
  /** Spans that may wait while an export is under way; those beyond are dropped. */
  readonly maxQueueSize: number;
  readonly maxExportBatchSize: number;
  readonly scheduleDelayMs: number;
  /** After that the next batch goes, whatever becomes of this one. */
  readonly exportTimeoutMs: number;
}

/** Takes a batch to the collector, with retries of its own, and says when nothing more will come of it. */
export interface SpanSink {
  export(batch: SpanBatch, done: (result: { readonly error?: Error }) => void): void;
  shutdown(): Promise<void>;
}

/** About thirty spans of ours; more are a matter of doubling. */
const firstSize = 16_384;
/** Spans that are encoded together: each alone, between requests, finds the encoder in none of the caches. */
const encodedTogether = 32;

/** Spans that have ended, as bytes but for the last few. */
export class SpanBatch {
  readonly origin: SpanOrigin;
  count = 0;
  readonly #ended: RecordedSpan[] = [];
  readonly #bytes = new ProtobufBytes(firstSize);

  constructor(origin: SpanOrigin) {
    this.origin = origin;
  }

  add(span: RecordedSpan): void {
    this.count += 1;
    this.#ended.push(span);
    if (this.#ended.length >= encodedTogether) this.#writeEnded();
  }

  /** The message that exports them. What the resource learns late has to be there. */
  encode(): Uint8Array {
    this.#writeEnded();
    return exportRequest(this.origin, this.#bytes.written);
  }

  #writeEnded(): void {
    for (const span of this.#ended) this.#write(span);
    this.#ended.length = 0;
  }

  #write(span: RecordedSpan): void {
    const bytes = this.#bytes;
    const { length } = bytes;
    try {
      writeSpan(bytes, span);
    } catch (error) {
      // Half a span would spoil all that come after it.
      bytes.length = length;
      this.count -= 1;
      diag.error(`A span that cannot be encoded is dropped: ${error}`);
    }
  }
}

/**
 * Does what the SDK's BatchSpanProcessor does, with bytes in place of spans: a batch goes when it is full or the delay
 * is over, one at a time, and what waits behind it is bounded.
 */
export class SpanBatches {
  readonly #origin: SpanOrigin;
  readonly #sink: SpanSink;
  readonly #limits: BatchLimits;
  readonly #full: SpanBatch[] = [];
  #filling: SpanBatch | null = null;
  /** Spans in all of them. */
  #waiting = 0;
  #dropped = 0;
  #exporting = false;
  #stopped: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(origin: SpanOrigin, sink: SpanSink, limits: BatchLimits) {
    this.#origin = origin;
    this.#sink = sink;
    this.#limits = limits;
  }

  add(span: RecordedSpan): void {
    if (this.#stopped !== null) return;
    if (this.#waiting >= this.#limits.maxQueueSize) {
      this.#dropped += 1;
      return;
    }
    if (this.#dropped > 0) diag.warn(`${this.#dropped} spans dropped: OTEL_BSP_MAX_QUEUE_SIZE were waiting`);
    this.#dropped = 0;
    const batch = this.#filling ?? new SpanBatch(this.#origin);
    this.#filling = batch;
    this.#waiting -= batch.count;
    batch.add(span);
    this.#waiting += batch.count;
    if (batch.count >= this.#limits.maxExportBatchSize) {
      this.#full.push(batch);
      this.#filling = null;
    }
    this.#schedule();
  }

  async #flush(): Promise<void> {
    const exports: Promise<void>[] = [];
    for (let batch = this.#take(); batch !== null; batch = this.#take()) exports.push(this.#export(batch));
    await Promise.all(exports);
  }

  shutdown(): Promise<void> {
    this.#stopped ??= this.#flush().then(() => this.#sink.shutdown());
    return this.#stopped;
  }

  #schedule(): void {
    if (this.#exporting || this.#waiting === 0) return;
    if (this.#full.length > 0) this.#exportNext();
    else this.#timer ??= setTimeout(() => this.#exportNext(), this.#limits.scheduleDelayMs).unref();
  }

  #exportNext(): void {
    const batch = this.#take();
    if (batch === null) return;
    this.#exporting = true;
    void this.#export(batch).then(() => {
      this.#exporting = false;
      this.#schedule();
    });
  }

  /** The batch that is to go next. */
  #take(): SpanBatch | null {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const batch = this.#full.shift() ?? this.#filling;
    if (batch === this.#filling) this.#filling = null;
    this.#waiting -= batch?.count ?? 0;
    return batch;
  }

  /** Never rejects: what a collector does not take is lost. */
  #export(batch: SpanBatch): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const finish = (error?: unknown): void => {
      clearTimeout(timer);
      if (error !== undefined) diag.error(`Spans could not be exported: ${error}`);
      resolve();
    };
    const timer = setTimeout(finish, this.#limits.exportTimeoutMs, 'OTEL_BSP_EXPORT_TIMEOUT').unref();
    const { resource } = this.#origin;
    const ready = resource.asyncAttributesPending ? resource.waitForAsyncAttributes?.() : undefined;
    Promise.resolve(ready)
      .then(() => this.#sink.export(batch, ({ error }) => finish(error)))
      .catch(finish);
    return promise;
  }
}
