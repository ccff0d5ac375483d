import type { CancelReason } from '../core/outcome.ts';
import type { StreamTranslator } from '../providers/provider.ts';
import { BugGuard } from './bug-guard.ts';
import { DueTimer } from './due-timer.ts';
import { clientStallMs, lingerMs, maxErrorBodyBytes, stallMs, usageReadMs } from './exchange-limits.ts';
import { isEventStream, overdueEnd, toldEnd } from './exchange-rules.ts';
import { HeldBytes, noRoom, tooLarge } from './held-bytes.ts';
import type { ExchangeEnd, ExchangeJob, OpenStream, StreamConsumer, StreamEnd } from './open-stream.ts';
import type { TransportFailure, UpstreamControl, UpstreamListener, UpstreamTransport } from './ports.ts';

/**
 * One upstream call from the written request to its last byte, in exactly one `ExchangeEnd`, and for an opened
 * stream one `StreamEnd`. Its one timer moves with the phase: first token, silence, slow client, usage, linger.
 */
export class Exchange implements UpstreamListener, OpenStream {
  firstTokenAtMs = 0;
  readonly #job: ExchangeJob;
  readonly #settle: (end: ExchangeEnd) => void;
  readonly #timer: DueTimer;
  #control: UpstreamControl | null = null;
  #status = 0;
  #headers: Parameters<UpstreamListener['onHead']>[1] = {};
  #streaming = false;
  #bodyLimit = 0;
  #bytes = 0;
  readonly #held: HeldBytes;
  #opened = false;
  #over = false;
  #paused = false;
  #lastActivityMs = 0;
  #pausedAtMs = 0;
  #stalledMs = 0;
  /** When we stop waiting for the usage of an answer that its client left with; null: it is here. */
  #usageDueMs: number | null = null;
  #consumer: StreamConsumer | null = null;
  #pendingEnd: StreamEnd | null = null;

  constructor(job: ExchangeJob, settle: (end: ExchangeEnd) => void) {
    this.#job = job;
    this.#settle = settle;
    this.#held = new HeldBytes(job.answers, job.call.userId, job.call.tables.document.limits.event_bytes);
    this.#timer = new DueTimer(job.monotonicMs, this.#onDue);
  }

  start(transport: UpstreamTransport): void {
    const { signal, attemptDueMs, requestDueMs, upstreamCall } = this.#job;
    if (signal.aborted) this.#onAbort();
    if (this.#over) return;
    signal.addEventListener('abort', this.#onAbort);
    this.#timer.setDue(Math.min(attemptDueMs, requestDueMs));
    this.#control = transport.send(upstreamCall, new BugGuard(this, this.#onBug));
  }

  get translator(): StreamTranslator {
    return this.#job.translator as StreamTranslator;
  }

  get stalledMs(): number {
    return this.#stalledMs + (this.#paused ? this.#job.monotonicMs() - this.#pausedAtMs : 0);
  }

  onHead(status: number, headers: Parameters<UpstreamListener['onHead']>[1]): void {
    this.#job.telemetry.answerBegan(this.#job.call);
    this.#status = status;
    this.#headers = headers;
    const ok = status === 200;
    this.#streaming = ok && this.#job.translator !== null && isEventStream(headers);
    const { limits } = this.#job.call.tables.document;
    // Before the first token at most one event's worth is held back.
    if (this.#streaming) this.#bodyLimit = limits.event_bytes;
    else this.#bodyLimit = ok ? limits.answer_bytes : maxErrorBodyBytes;
  }

  onData(chunk: Buffer): void {
    if (this.#over) return;
    this.#bytes += chunk.length;
    if (this.#streaming) this.#onStreamData(chunk);
    else this.#onBodyData(chunk);
  }

  onEnd(): void {
    if (!this.#over && this.#streaming) {
      const out = this.translator.end();
      if (out !== null) this.#deliver(out);
      this.#followPhase();
    } else if (!this.#over) this.#endReplied(false);
    this.#release();
  }

  onFailure(failure: TransportFailure): void {
    if (!this.#over) this.#fail(failure);
    this.#release();
  }

  attach(consumer: StreamConsumer): void {
    this.#consumer = consumer;
    let end = this.#pendingEnd;
    try {
      if (this.#held.length > 0) consumer.onBytes(this.#held.take());
    } catch (cause) {
      if (this.#over) end = { kind: 'broken', cause };
      else this.#onBug(cause);
    }
    if (end !== null) consumer.onEnd(end);
  }

  pause(): void {
    if (this.#over || this.#paused) return;
    this.#paused = true;
    this.#control?.pause();
    this.#pausedAtMs = this.#job.monotonicMs();
    this.#timer.setDue(Math.min(this.#pausedAtMs + clientStallMs, this.#job.requestDueMs));
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#lastActivityMs = this.#job.monotonicMs();
    this.#stalledMs += this.#lastActivityMs - this.#pausedAtMs;
    if (!this.#over) this.#timer.setDue(this.#idleDueMs());
    this.#control?.resume();
  }

  #onStreamData(chunk: Buffer): void {
    const nowMs = this.#job.monotonicMs();
    const silentMs = nowMs - this.#lastActivityMs;
    if (this.#opened && silentMs > stallMs) this.#job.telemetry.streamStalled(this.#job.call, silentMs);
    this.#lastActivityMs = nowMs;
    const out = this.translator.push(chunk);
    if (out !== null) this.#deliver(out);
    this.#followPhase();
    this.#held.translated(chunk.length, out !== null);
    // What is held can be longer than what came: it was put into form.
    const isLong = Math.max(this.#bytes, this.#held.length) > this.#bodyLimit;
    if (this.#over || (!isLong && this.#held.fits())) return;
    this.#fail(isLong ? tooLarge('stream', this.#bodyLimit) : noRoom);
    this.#abortUpstream();
  }

  #onBodyData(chunk: Buffer): void {
    const excess = this.#bytes - this.#bodyLimit;
    if (excess > 0 && this.#status === 200) {
      this.#fail(tooLarge('answer', this.#bodyLimit));
    } else {
      this.#held.add(excess > 0 ? chunk.subarray(0, chunk.length - excess) : chunk);
      if (excess > 0) this.#endReplied(true);
      else if (this.#held.fits()) return;
      else this.#fail(noRoom);
    }
    this.#abortUpstream();
  }

  #deliver(out: Buffer): void {
    if (this.#consumer !== null) this.#consumer.onBytes(out);
    else this.#held.add(out);
  }

  /** Moves on with the translator: first token, end marker, failure. */
  #followPhase(): void {
    const { translator } = this;
    if (!this.#opened && translator.tokenSeen) {
      this.#opened = true;
      this.firstTokenAtMs = this.#lastActivityMs;
      this.#bodyLimit = this.#job.call.tables.document.limits.stream_bytes;
      this.#timer.setDue(this.#idleDueMs());
      this.#settle({ kind: 'streaming', stream: this });
    }
    if (translator.phase === 'finished') {
      this.#stop({ kind: 'complete' }, { kind: 'stream-failed' });
      this.#timer.setDue(this.#job.monotonicMs() + lingerMs);
    } else if (translator.phase === 'failed') {
      const reason = translator.failure?.message ?? 'The upstream stream failed.';
      this.#stop({ kind: 'failed', reason }, { kind: 'stream-failed' });
      this.#abortUpstream();
    }
  }

  readonly #onBug = (cause: unknown): void => {
    this.#stop({ kind: 'broken', cause }, { kind: 'broken', cause });
    this.#abortUpstream();
  };

  readonly #onAbort = (): void => {
    const reason = this.#job.signal.reason as CancelReason;
    if (!this.#over && reason === 'client-gone' && this.#opened && this.translator.answerEnded) {
      this.#usageDueMs = this.#job.monotonicMs() + usageReadMs;
      this.#timer.setDue(this.#usageDueMs);
      return;
    }
    this.#stop({ kind: 'cancelled', reason }, { kind: 'cancelled', reason });
    this.#abortUpstream();
  };

  #idleDueMs(): number {
    if (this.#usageDueMs !== null) return Math.min(this.#usageDueMs, this.#job.requestDueMs);
    const idleMs = this.#job.call.tables.document.timeouts.stream_idle_seconds * 1000;
    return Math.min(this.#lastActivityMs + idleMs, this.#job.requestDueMs);
  }

  readonly #onDue = (): void => {
    const nowMs = this.#job.monotonicMs();
    // Events do not touch the timer: only when it fires is the last one's time looked at.
    if (this.#opened && !this.#over && !this.#paused && nowMs < this.#idleDueMs()) {
      this.#timer.setDue(this.#idleDueMs());
      return;
    }
    const end = overdueEnd(this.#paused || this.#usageDueMs !== null, nowMs >= this.#job.requestDueMs);
    const isSilent = this.#opened && !this.#over && end.kind === 'failed' && end.idle === true;
    if (isSilent) this.#job.telemetry.streamStalled(this.#job.call, nowMs - this.#lastActivityMs);
    this.#stop(end, { kind: 'timed-out', afterMs: nowMs - this.#job.startedAtMs });
    this.#abortUpstream(isSilent);
  };

  #endReplied(cut: boolean): void {
    const reply = { status: this.#status, headers: this.#headers, body: this.#held.take(), cut };
    this.#end({ kind: 'replied', ...reply });
  }

  #stop(stream: StreamEnd, unopened: ExchangeEnd): void {
    if (this.#over) return;
    if (this.#opened) this.#endStream(stream);
    else this.#end(unopened);
  }

  #fail(failure: TransportFailure): void {
    this.#stop({ kind: 'failed', reason: failure.message }, { kind: 'transport', failure });
  }

  #end(end: ExchangeEnd): void {
    this.#over = true;
    this.#settle(end);
  }

  #endStream(end: StreamEnd): void {
    this.#over = true;
    const told = toldEnd(end, this.#usageDueMs !== null, this.#job.redact);
    if (this.#consumer !== null) this.#consumer.onEnd(told);
    else this.#pendingEnd = told;
  }

  #abortUpstream(isSilent = false): void {
    this.#release();
    this.#control?.abort(isSilent);
  }

  #release(): void {
    this.#timer.clear();
    this.#held.uncount();
    this.#job.signal.removeEventListener('abort', this.#onAbort);
  }
}
