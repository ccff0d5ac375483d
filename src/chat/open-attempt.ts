import type { AttemptEnd, AttemptRecord, VendorAnswer } from '../core/attempt-record.ts';
import type { Candidate } from '../core/candidate.ts';
import type { IpClass } from '../core/net/ip-class.ts';
import type { AttemptFailure, CancelReason } from '../core/outcome.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import type { Redact } from '../core/secret/redact.ts';
import type { AttemptLedger } from './attempt-ledger.ts';
import type { ChatDeps } from './chat-deps.ts';

/** What is known of an answer, or of the part of it that came. */
type AnswerFacts = Pick<AttemptRecord, 'firstTokenMs' | 'usage' | 'answer'>;

/** What is known of an attempt without an answer. */
const noFacts: AnswerFacts = { firstTokenMs: null, usage: null, answer: null };

type AttemptState = 'under way' | 'opened' | 'ended';

type AttemptDeps = Pick<ChatDeps, 'breakers' | 'telemetry' | 'clock'>;

/**
 * One attempt from its start to its one end. Breakers, ledger and telemetry learn of both here and nowhere else.
 * States: *under way*, then *opened* where a stream showed its first token, then *ended* by one of `served`, `failed`,
 * `cut` and `cancelled`; a second end throws.
 */
export class OpenAttempt {
  readonly candidate: Candidate;
  /** Monotonic milliseconds. */
  readonly startedAtMs: number;
  readonly #number: number;
  readonly #call: ChatCall;
  readonly #ledger: AttemptLedger;
  readonly #deps: AttemptDeps;
  #dropped: readonly string[] = [];
  #isSent = false;
  #addressClass: IpClass | null = null;
  #state: AttemptState = 'under way';
  #redact: Redact = (texts) => texts;

  /** `number`: from 1. */
  constructor(
    call: ChatCall,
    candidate: Candidate,
    number: number,
    startedAtMs: number,
    ledger: AttemptLedger,
    deps: AttemptDeps,
  ) {
    this.#call = call;
    this.candidate = candidate;
    this.#number = number;
    this.startedAtMs = startedAtMs;
    this.#ledger = ledger;
    this.#deps = deps;
    ledger.last = candidate;
    deps.breakers.started(candidate, startedAtMs);
    deps.telemetry.attemptStarted(call, candidate, number);
  }

  /** Client fields that were left out of what was sent. */
  leftOut(dropped: readonly string[]): void {
    this.#dropped = dropped;
  }

  /** What masks its key, and the prompt, in what its vendor says: no longer than it lasts. */
  masksBy(redact: Redact): void {
    this.#redact = redact;
  }

  /** How far an exchange of it came; there may be a second one, in another form. */
  reached({ isSent, addressClass }: Pick<AttemptRecord, 'isSent' | 'addressClass'>): void {
    this.#isSent ||= isSent;
    this.#addressClass = addressClass;
  }

  /** The first token of its stream is there. */
  opened(): void {
    this.#mustBe('under way', 'opened');
    this.#state = 'opened';
    this.#succeed();
  }

  /** The whole answer is there. */
  served(facts: AnswerFacts): void {
    if (this.#state === 'under way') this.#succeed();
    this.#end({ kind: 'served' }, facts);
  }

  /** It ended without an answer. */
  failed(failure: AttemptFailure): void {
    this.#mustBe('under way', 'failed');
    const { userId, tables } = this.#call;
    this.#deps.breakers.failed(this.candidate, failure, this.startedAtMs, userId, tables);
    this.#end({ kind: 'failed', failure }, { ...noFacts, usage: failure.usage ?? null });
  }

  /** Its stream broke after the first token. */
  cut(reason: string, facts: AnswerFacts): void {
    this.#mustBe('opened', 'cut');
    this.#end({ kind: 'cut', reason }, facts);
  }

  /** Nobody waits for it any more; `facts`: what it had stated until then. */
  cancelled(reason: CancelReason, facts: Partial<AnswerFacts>): void {
    if (this.#state === 'under way') this.#deps.breakers.abandoned(this.candidate, this.startedAtMs);
    this.#end({ kind: 'cancelled', reason }, { ...noFacts, ...facts });
  }

  /** Before anything is reported: a move that is none must change nothing. */
  #mustBe(state: AttemptState, move: string): void {
    if (this.#state !== state) throw new Error(`An attempt that is ${this.#state} cannot be ${move}.`);
  }

  #succeed(): void {
    this.#ledger.served = this.candidate;
    this.#deps.breakers.succeeded(this.candidate, this.startedAtMs);
  }

  #end(end: AttemptEnd, { firstTokenMs, usage, answer }: AnswerFacts): void {
    if (this.#state === 'ended') throw new Error(`An attempt that has ended cannot be ${end.kind} as well.`);
    this.#state = 'ended';
    const named = answer === null ? null : this.#names(answer);
    this.#redact = (texts) => texts;
    const record: AttemptRecord = {
      kind: 'tried',
      candidate: this.candidate,
      number: this.#number,
      isSent: this.#isSent,
      addressClass: this.#addressClass,
      end,
      startedAtMs: this.startedAtMs,
      durationMs: this.#deps.clock.monotonicMs() - this.startedAtMs,
      firstTokenMs,
      usage,
      answer: named,
      dropped: this.#dropped,
    };
    this.#ledger.add(record);
    this.#deps.telemetry.attemptEnded(this.#call, record);
  }

  /** Only spans show them, and only of requests that are recorded: each look at them costs some microseconds. */
  #names(answer: VendorAnswer): VendorAnswer {
    if (this.#call.trace?.sampled !== true) return answer;
    const [id = '', model = '', ...finishReasons] = this.#redact([
      answer.id,
      answer.model,
      ...answer.finishReasons,
    ]);
    return { id, model, finishReasons };
  }
}
