import type { Usage } from '../core/answer/usage.ts';
import type { AttemptRecord, CandidateRecord } from '../core/attempt-record.ts';
import type { Candidate } from '../core/candidate.ts';
import type { SkippedCandidate } from '../core/plan.ts';

/** What became of the candidates of one request, in order. */
export class AttemptLedger {
  readonly records: CandidateRecord[] = [];
  /** How many were tried; those passed over are not counted. */
  tries = 0;
  /** The candidate of the row: the one tried last, or, where nobody answered, the one that stated usage last. */
  last: Candidate | null = null;
  /** The candidate that gave the answer, or began its stream. */
  served: Candidate | null = null;
  /** Those that the plan passed over or moved back. */
  skipped: readonly SkippedCandidate[] = [];
  /** How many of these have been looked at for `passOver`. */
  #passed = 0;

  /** The end of one attempt. */
  add(record: AttemptRecord): void {
    this.tries += 1;
    this.records.push(record);
  }

  /** The last attempt whose vendor stated what it used up; null: none did. */
  lastBilled(): { readonly candidate: Candidate; readonly usage: Usage } | null {
    for (const record of this.records.toReversed()) {
      if (record.kind !== 'tried' || record.usage === null || record.usage.basis === 'none') continue;
      return { candidate: record.candidate, usage: record.usage };
    }
    return null;
  }

  /** Records those that cannot serve and whose place is before the candidate of `index`, each once. */
  passOver(index: number): void {
    for (const candidate of this.skipped.slice(this.#passed)) {
      const isUnable = candidate.reason === 'capability';
      if (isUnable && candidate.before > index) break;
      this.#passed += 1;
      if (isUnable) this.records.push({ kind: 'passed-over', ...candidate });
    }
  }
}
