import type { Candidate } from '../core/candidate.ts';
import type { AttemptFailure, CancelReason } from '../core/outcome.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import { requestDueMs } from '../core/request/chat-call.ts';
import type { TranslatedAnswer } from '../providers/provider.ts';
import type { AnswerHold } from './answer-budget.ts';
import { attempt } from './attempt.ts';
import type { AttemptLedger } from './attempt-ledger.ts';
import type { AttemptOutcome } from './attempt-outcome.ts';
import { brokenAttempt } from './attempt-outcome.ts';
import type { CancelSignal } from './cancellation.ts';
import type { ChatDeps } from './chat-deps.ts';
import { OpenAttempt } from './open-attempt.ts';
import type { OpenStream } from './open-stream.ts';

export type FallbackResult =
  | { readonly kind: 'answered'; readonly answer: TranslatedAnswer; readonly candidate: Candidate }
  /** The attempt goes on with its stream; whoever reads it to its end says how it ended. */
  | { readonly kind: 'stream-opened'; readonly stream: OpenStream; readonly attempt: OpenAttempt }
  | { readonly kind: 'exhausted'; readonly failures: readonly AttemptFailure[] }
  | {
      readonly kind: 'cancelled';
      readonly reason: CancelReason;
    };

/**
 * Tries the candidates in order until one answers or opens its stream (SPEC 4.5, routing rule 1). Stops
 * when the client is gone or the request's own time is up; nothing is tried after a first token. `room`: for a whole
 * answer, which is the caller's to give back.
 */
export async function fallBack(
  call: ChatCall,
  candidates: readonly Candidate[],
  ledger: AttemptLedger,
  deps: ChatDeps,
  signal: CancelSignal,
  room: AnswerHold,
): Promise<FallbackResult> {
  const dueMs = requestDueMs(call);
  const failures: AttemptFailure[] = [];
  let failed: { readonly candidate: Candidate; readonly failure: AttemptFailure } | null = null;
  for (const [index, candidate] of candidates.entries()) {
    const startedAtMs = deps.clock.monotonicMs();
    if (failures.length > 0 && startedAtMs >= dueMs) break;
    if (signal.aborted) {
      return { kind: 'cancelled', reason: signal.reason as CancelReason };
    }
    ledger.passOver(index);
    if (failed !== null) deps.telemetry.fellBack(call, failed.candidate, candidate, failed.failure);
    const opened = new OpenAttempt(call, candidate, index + 1, startedAtMs, ledger, deps);
    let outcome: AttemptOutcome;
    try {
      outcome = await attempt(opened, call, deps, dueMs, signal, room);
    } catch (cause) {
      deps.reportBug(cause, call);
      outcome = brokenAttempt();
    }
    switch (outcome.kind) {
      case 'answered': {
        const { answer } = outcome;
        const { id, model, choices } = answer.completion;
        const finishReasons = choices.map((choice) => choice.finish_reason);
        opened.served({ firstTokenMs: null, usage: answer.usage, answer: { id, model, finishReasons } });
        return { kind: 'answered', answer, candidate };
      }
      case 'stream-opened':
        opened.opened();
        return { kind: 'stream-opened', stream: outcome.stream, attempt: opened };
      case 'cancelled': {
        const { reason, usage } = outcome;
        opened.cancelled(reason, { usage });
        return { kind: 'cancelled', reason };
      }
      case 'failed': {
        const { failure } = outcome;
        opened.failed(failure);
        failures.push(failure);
        failed = { candidate, failure };
      }
    }
  }
  // Those after the last one tried could not have helped, whether the order ended or the time did.
  ledger.passOver(candidates.length);
  return { kind: 'exhausted', failures };
}
