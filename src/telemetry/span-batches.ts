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
/** For each span that may wait: three times what one of ours takes. A vendor's words can make some longer, not all. */
const meanSpanBytes = 2_048;
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

  /** But for the spans that are not encoded yet. */
  get bytes(): number {
    return this.#bytes.length;
  }

  add(span: RecordedSpan): void {
    this.count += 1;
    this.#ended.push(span);
    if (this.#ended.length >= encodedTogether) this.encodeEnded();
  }

  /** Encodes what is not yet: nothing else of the spans is kept then. */
  encodeEnded(): void {
    for (const span of this.#ended) this.#write(span);
    this.#ended.length = 0;
  }

  /** The message that exports them. What the resource learns late has to be there. */
  encode(): Uint8Array {
    this.encodeEnded();
    return exportRequest(this.origin, this.#bytes.written);
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
  /** Spans in all of them, and their bytes. */
  #waiting = 0;
  #waitingBytes = 0;
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
    const { maxQueueSize } = this.#limits;
    if (this.#waiting >= maxQueueSize || this.#waitingBytes >= maxQueueSize * meanSpanBytes) {
      this.#dropped += 1;
      return;
    }
    if (this.#dropped > 0) diag.warn(`${this.#dropped} spans dropped: as many as may wait were waiting`);
    this.#dropped = 0;
    const batch = this.#filling ?? new SpanBatch(this.#origin);
    this.#filling = batch;
    this.#count(batch, -1);
    batch.add(span);
    if (batch.count >= this.#limits.maxExportBatchSize) {
      batch.encodeEnded();
      this.#full.push(batch);
      this.#filling = null;
    }
    this.#count(batch, 1);
    this.#schedule();
  }

  #count({ count, bytes }: SpanBatch, sign: 1 | -1): void {
    this.#waiting += sign * count;
    this.#waitingBytes += sign * bytes;
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
    if (batch !== null) this.#count(batch, -1);
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
