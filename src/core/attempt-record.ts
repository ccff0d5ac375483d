import type { Usage, UsageBasis } from './answer/usage.ts';
import type { Candidate, HeldKey } from './candidate.ts';
import { featureText } from './capability.ts';
import type { AttemptReport } from './errors.ts';
import type { IpClass } from './net/ip-class.ts';
import type { AttemptFailure, CancelReason, FailureKind } from './outcome.ts';
import type { UnableCandidate } from './plan.ts';
import { shownFields } from './request/dropped-fields.ts';
import type { Residency } from './request/residency.ts';

/** What the vendor said of its own answer. */
export interface VendorAnswer {
  readonly id: string;
  readonly model: string;
  /** One per choice. */
  readonly finishReasons: readonly string[];
}

/** How one attempt ended. */
export type AttemptEnd =
  | { readonly kind: 'served' }
  /** Before its answer, or the first token of its stream. */
  | { readonly kind: 'failed'; readonly failure: AttemptFailure }
  /** Its stream broke after the first token. */
  | { readonly kind: 'cut'; readonly reason: string }
  /** The client left, or the process had to stop. */
  | { readonly kind: 'cancelled'; readonly reason: CancelReason };

/** One finished attempt. */
export interface AttemptRecord {
  readonly kind: 'tried';
  readonly candidate: Candidate;
  /** From 1. */
  readonly number: number;
  /** Its vendor may have the request: it was handed to a connection. */
  readonly isSent: boolean;
  /** Of the address that its connection led to; null where none was made, or the client does not tell. */
  readonly addressClass: IpClass | null;
  readonly end: AttemptEnd;
  /** Monotonic milliseconds. */
  readonly startedAtMs: number;
  readonly durationMs: number;
  /** Null for JSON answers and where no token came. */
  readonly firstTokenMs: number | null;
  /** Null where nothing could be stated. */
  readonly usage: Usage | null;
  /** Null where no answer came. */
  readonly answer: VendorAnswer | null;
  /** Client fields that the vendor lacks and that were left out. */
  readonly dropped: readonly string[];
}

/**
 * Whether its caller gave it up before anything came of it: by leaving, or by a limit shorter than everybody's. The
 * vendor has the prompt, and may charge for it.
 */
export function isGivenUp({
  isSent,
  end,
  firstTokenMs,
}: Pick<AttemptRecord, 'isSent' | 'end' | 'firstTokenMs'>): boolean {
  if (!isSent) return false;
  if (end.kind === 'cancelled') return end.reason === 'client-gone' && firstTokenMs === null;
  return end.kind === 'failed' && end.failure.byCallersLimit === true;
}

/** What became of one candidate: it was tried, or passed over for what it lacks. */
export type CandidateRecord = AttemptRecord | ({ readonly kind: 'passed-over' } & UnableCandidate);

/** In whole milliseconds. */
export const shownLatency = ({ durationMs }: AttemptRecord): number => Math.round(durationMs);

/** A candidate's fate in the words of log rows and error bodies. */
export function attemptReport(record: CandidateRecord): AttemptReport {
  if (record.kind === 'passed-over') {
    const { provider, model, detail } = record;
    const reason = `skipped: does not support ${featureText(detail)}`;
    return { provider, model, status: null, reason, latency_ms: 0 };
  }
  const { provider, model } = record.candidate;
  const [status, reason] = statusAndReason(record);
  const report = { provider, model, status, reason, latency_ms: shownLatency(record) };
  return record.dropped.length === 0 ? report : { ...report, dropped: shownFields(record.dropped) };
}

/** What the row keeps of an attempt beside its report. Of the one that served, the row itself has the rest. */
export interface AttemptRow extends AttemptReport {
  /** `cut`: by either side. Absent where nobody was asked. */
  readonly end?: AttemptEnd['kind'];
  /** Of one that failed. */
  readonly failure?: FailureKind;
  /** Absent where nobody was asked. */
  readonly residency?: Residency;
  /** What the owner of a self_hosted key said of its server. */
  readonly declared_region?: string;
  /** Absent where no connection was made. */
  readonly address_class?: IpClass;
  readonly key_id?: string;
  readonly usage?: StoredUsage;
}

/** What an attempt had stated, in the names of the row's own columns. */
export interface StoredUsage {
  readonly basis: UsageBasis;
  readonly input_tokens: number;
  readonly output_tokens: number;
}

export function attemptRow(record: CandidateRecord): AttemptRow {
  const report = attemptReport(record);
  if (record.kind === 'passed-over') return report;
  const { candidate, end, usage } = record;
  const facts = servedFacts(record);
  if (end.kind === 'served') return { ...report, ...servedRow(facts, report.latency_ms) };
  const row = { ...report, ...keptEnd(record), ...placeOf(facts), key_id: candidate.key.id };
  if (usage === null || usage.basis === 'none') return row;
  const { basis, inputTokens: input_tokens, outputTokens: output_tokens } = usage;
  return { ...row, usage: { basis, input_tokens, output_tokens } };
}

/**
 * All that a row says of an attempt that served and left nothing out, beside its latency. The text of the one before is
 * kept while these are the same (stored-json.ts): `servedRow` may know nothing else of a record.
 */
export interface ServedFacts
  extends Pick<AttemptRecord, 'addressClass'>,
    Pick<Candidate, 'provider' | 'model' | 'residency'>,
    Pick<HeldKey, 'declaredRegion'> {}

export function servedFacts({ candidate, addressClass }: AttemptRecord): ServedFacts {
  const { provider, model, residency, key } = candidate;
  return { provider, model, residency, declaredRegion: key.declaredRegion, addressClass };
}

/** Each by name: a loop over the names takes six times as long. */
export function isSameServed(one: ServedFacts, other: ServedFacts): boolean {
  return (
    one.provider === other.provider &&
    one.model === other.model &&
    one.residency === other.residency &&
    one.declaredRegion === other.declaredRegion &&
    one.addressClass === other.addressClass
  );
}

export function servedRow(facts: ServedFacts, latencyMs: number): AttemptRow {
  const { provider, model } = facts;
  const [status, reason] = asServed;
  return { provider, model, status, reason, latency_ms: latencyMs, end: 'served', ...placeOf(facts) };
}

/** What the row itself has of the attempt that served. */
export interface ServedAttemptFacts {
  readonly key_id: string | null;
  readonly usage: StoredUsage | null;
}

/** An attempt of a row, of this release or of those before; null: it is not known, or there is none. */
export interface ReadAttempt extends ServedAttemptFacts {
  readonly report: AttemptReport;
  readonly place: {
    readonly residency: Residency | null;
    readonly declared_region: string | null;
    readonly address_class: IpClass | null;
  };
  readonly end: AttemptEnd['kind'] | null;
  readonly failure: FailureKind | null;
}

/** What `attemptRow` wrote, each with what its row has of the one that served. */
export function readAttempts(
  attempts: readonly AttemptRow[],
  served: ServedAttemptFacts,
): readonly ReadAttempt[] {
  return attempts.map((attempt) => {
    const { end = null, failure = null, key_id = null, usage = null, ...placed } = attempt;
    const { residency = null, declared_region = null, address_class = null, ...report } = placed;
    const facts = end === 'served' ? served : { key_id, usage };
    return { report, place: { residency, declared_region, address_class }, ...facts, end, failure };
  });
}

/** Where the prompt was sent to, as far as anybody knows. */
function placeOf({ residency, declaredRegion, addressClass }: ServedFacts) {
  return {
    residency,
    ...(declaredRegion === null ? {} : { declared_region: declaredRegion }),
    ...(addressClass === null ? {} : { address_class: addressClass }),
  };
}

/** An answer that had begun was cut, whoever ended it. */
function keptEnd({ end, firstTokenMs }: AttemptRecord): Pick<AttemptRow, 'end' | 'failure'> {
  if (end.kind === 'failed') return { end: 'failed', failure: end.failure.kind };
  return { end: end.kind === 'cancelled' && firstTokenMs !== null ? 'cut' : end.kind };
}

const asServed: readonly [status: number, reason: string] = [200, 'served'];

function statusAndReason({ end, candidate, firstTokenMs }: AttemptRecord): readonly [number | null, string] {
  switch (end.kind) {
    case 'served':
      return asServed;
    case 'cut':
      return [200, `cut: ${end.reason}`];
    case 'cancelled':
      return firstTokenMs === null ? [null, `cancelled: ${end.reason}`] : [200, `cut: ${end.reason}`];
    case 'failed': {
      const { kind, reason, status } = end.failure;
      return [status, `${kind}: ${reason}${candidate.heldBack ? ' (tried last: cooldown)' : ''}`];
    }
  }
}
