import type { IpClass } from '../core/net/ip-class.ts';
import type { CancelReason } from '../core/outcome.ts';
import { promisesAnswer } from '../core/outcome.ts';
import type { StreamTranslator } from '../providers/provider.ts';
import { BugGuard } from './bug-guard.ts';
import { stallMs } from './exchange-limits.ts';
import { ExchangeProgress } from './exchange-progress.ts';
import { endForConsumer, isEventStream, overdueEnd } from './exchange-rules.ts';
import type { ExchangeEnd, ExchangeJob, OpenStream, StreamConsumer, StreamEnd } from './open-stream.ts';
import type {
  TransportFailure,
  UpstreamControl,
  UpstreamHead,
  UpstreamListener,
  UpstreamTransport,
} from './ports.ts';
import { StreamBody } from './stream-body.ts';
import { WholeBody } from './whole-body.ts';

/**
 * One upstream call from the written request to its last byte, in exactly one `ExchangeEnd`, and for an opened
 * stream one `StreamEnd`. States: *connecting*, then *whole-body*, or *prefix*, *streaming*, *usage-only* and
 * *lingering*, then *closed*; `ExchangeState` says what each waits for and until when.
 */
export class Exchange implements UpstreamListener, OpenStream {
  firstTokenAtMs = 0;
  readonly #job: ExchangeJob;
  readonly #settle: (end: ExchangeEnd) => void;
  readonly #progress: ExchangeProgress;
  #control: UpstreamControl | null = null;
  /** One of these two is there once the head was. */
  #whole: WholeBody | null = null;
  #stream: StreamBody | null = null;

  constructor(job: ExchangeJob, settle: (end: ExchangeEnd) => void) {
    this.#job = job;
    this.#settle = settle;
    this.#progress = new ExchangeProgress(job, this.#onDue);
  }

  start(transport: UpstreamTransport): void {
    const { signal, upstreamCall } = this.#job;
    if (signal.aborted) {
      this.#onAbort();
      return;
    }
    signal.addEventListener('abort', this.#onAbort);
    this.#progress.start();
    try {
      this.#control = transport.send(upstreamCall, new BugGuard(this, this.#onBug));
    } catch (cause) {
      this.#onBug(cause);
    }
  }

  get translator(): StreamTranslator {
    return this.#job.translator as StreamTranslator;
  }

  get answerBytes(): number {
    return this.#stream?.bytes ?? 0;
  }

  get stalledMs(): number {
    return this.#progress.stalledMs;
  }

  get isSent(): boolean {
    return this.#control?.isSent ?? false;
  }

  get connectionName(): string | null {
    return this.#control?.connectionName ?? null;
  }

  get addressClass(): IpClass | null {
    return this.#control?.addressClass ?? null;
  }

  onHead(head: UpstreamHead): void {
    if (this.#progress.isOver) return;
    const { call, translator, answers, telemetry, upstreamCall } = this.#job;
    telemetry.answerBegan(call);
    if (promisesAnswer(head.status) && translator !== null && isEventStream(head.contentType)) {
      this.#stream = new StreamBody(translator, call, answers, upstreamCall.userAddress);
      this.#progress.to('prefix');
    } else {
      this.#whole = new WholeBody(head, call, answers, upstreamCall.userAddress);
      this.#progress.to('whole-body');
    }
  }

  onData(chunk: Buffer): void {
    if (this.#progress.isOver) return;
    if (this.#stream !== null) this.#onStreamData(this.#stream, chunk);
    else if (this.#whole !== null) this.#onBodyData(this.#whole, chunk);
    else throw new Error('A body came before its head.');
  }

  onEnd(): void {
    if (!this.#progress.isOver) {
      if (this.#stream !== null) {
        this.#stream.finish();
        this.#followPhase(this.#stream);
      } else if (this.#whole !== null) this.#endUnopened(this.#whole.end());
      else throw new Error('A body ended before its head.');
    }
    this.#close();
  }

  onFailure(failure: TransportFailure): void {
    this.#fail(failure);
    this.#close();
  }

  attach(consumer: StreamConsumer): void {
    try {
      this.#stream?.attach(consumer);
    } catch (cause) {
      this.#onBug(cause);
    }
  }

  pause(): void {
    if (this.#progress.pause()) this.#control?.pause();
  }

  resume(): void {
    if (this.#progress.resume()) this.#control?.resume();
  }

  #onBodyData(body: WholeBody, chunk: Buffer): void {
    const end = body.take(chunk);
    if (end === null) return;
    this.#endUnopened(end);
    this.#abortUpstream();
  }

  #onStreamData(body: StreamBody, chunk: Buffer): void {
    const silentMs = this.#progress.bytesCame();
    if (silentMs > stallMs && this.#progress.isOpen) {
      this.#job.telemetry.streamStalled(this.#job.call, silentMs);
    }
    body.take(chunk);
    this.#followPhase(body);
    if (this.#progress.isOver) return;
    const excess = body.excess();
    if (excess === null) return;
    this.#fail(excess);
    this.#abortUpstream();
  }

  /** Moves on with the translator: first token, end marker, failure. Settling may have ended the exchange meanwhile. */
  #followPhase(body: StreamBody): void {
    const { translator } = this;
    const { phase } = translator;
    if (this.#progress.state === 'prefix' && translator.tokenSeen) {
      this.firstTokenAtMs = this.#progress.lastActivityMs;
      this.#progress.to('streaming');
      this.#settle({ kind: 'streaming', stream: this });
      if (this.#progress.isOver) return;
    }
    if (phase === 'finished') {
      this.#progress.to('lingering');
      body.end({ kind: 'complete' });
    } else if (phase === 'failed') {
      const { message = 'The upstream stream failed.' } = translator.failure ?? {};
      // Else the attempt does it.
      const [reason = ''] = this.#progress.isOpen ? this.#job.redact([message]) : [message];
      this.#end({ kind: 'failed', reason }, { kind: 'stream-failed' });
      this.#abortUpstream();
    }
  }

  readonly #onBug = (cause: unknown): void => {
    this.#end({ kind: 'broken', cause }, { kind: 'broken', cause });
    this.#abortUpstream();
  };

  /** Called by the client's signal. */
  readonly #onAbort = (): void => {
    try {
      this.#cancel();
    } catch (cause) {
      this.#onBug(cause);
    }
  };

  #cancel(): void {
    const reason = this.#job.signal.reason as CancelReason;
    if (this.#progress.state === 'streaming' && reason === 'client-gone' && this.translator.answerEnded) {
      this.#progress.to('usage-only');
      return;
    }
    this.#end({ kind: 'cancelled', reason }, { kind: 'cancelled', reason });
    this.#abortUpstream();
  }

  /** Called by the timer of all exchanges. */
  readonly #onDue = (nowMs: number): void => {
    try {
      this.#timeOut(nowMs);
    } catch (cause) {
      this.#onBug(cause);
    }
  };

  #timeOut(nowMs: number): void {
    const { isOpen, isUnread, lastActivityMs } = this.#progress;
    const { call, telemetry, requestDueMs, startedAtMs } = this.#job;
    const end = overdueEnd(isUnread, nowMs >= requestDueMs);
    const midAnswer = isOpen && end.kind === 'failed' && end.idle === true;
    if (midAnswer) telemetry.streamStalled(call, nowMs - lastActivityMs);
    this.#end(end, { kind: 'timed-out', afterMs: nowMs - startedAtMs });
    this.#abortUpstream(midAnswer);
  }

  #fail(failure: TransportFailure): void {
    this.#end({ kind: 'failed', reason: failure.message }, { kind: 'transport', failure });
  }

  /** Ends what has not ended: an open stream as `stream`, an exchange before its answer as `unopened`. */
  #end(stream: StreamEnd, unopened: ExchangeEnd): void {
    const { isOpen, isOver, state } = this.#progress;
    if (isOpen) {
      const end = endForConsumer(stream, state === 'usage-only');
      this.#close();
      this.#stream?.end(end);
    } else if (!isOver) {
      this.#endUnopened(unopened);
    }
  }

  #endUnopened(end: ExchangeEnd): void {
    this.#close();
    this.#settle(end);
  }

  #abortUpstream(midAnswer = false): void {
    this.#close();
    this.#control?.abort(midAnswer);
  }

  /** Gives back all that it holds. */
  #close(): void {
    if (this.#progress.state === 'closed') return;
    this.#progress.to('closed');
    this.#whole?.release();
    this.#stream?.release();
    this.#job.signal.removeEventListener('abort', this.#onAbort);
  }
}
