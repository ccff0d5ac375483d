import { LRUCache } from 'lru-cache';
import type { BreakerState } from '../core/breaker-state.ts';
import type { Candidate } from '../core/candidate.ts';
import type { AttemptFailure } from '../core/outcome.ts';
import type { ProviderName } from '../core/provider-name.ts';
import { isUserServer } from '../core/provider-name.ts';
import type { RoutingTables } from '../core/tables/tables.ts';
import type { BreakerRules } from './candidate-breaker.ts';
import { CandidateBreaker } from './candidate-breaker.ts';

/** Keys that have a breaker; the least recently used are forgotten, which only closes theirs. */
const maxRemembered = 50_000;

/** The breaker of a whole provider, and the users that saw its trouble. */
interface SharedBreaker {
  readonly breaker: CandidateBreaker;
  readonly users: Set<string>;
}

/**
 * Which candidates have failed so often that they are tried last for a while. There is a breaker per provider key, so
 * that one tenant's bad key never moves another's; and one per provider, which opens only when several users of one
 * vendor saw connect failures or 5xx. A candidate behind a breaker that is not closed is moved, never removed.
 */
export class CandidateBreakers {
  readonly #byKey = new LRUCache<string, CandidateBreaker>({ max: maxRemembered });
  readonly #byProvider = new Map<ProviderName, SharedBreaker>();
  readonly #monotonicMs: () => number;
  /** How often a provider came into a state, by `<provider> <state>`. */
  readonly #transitions = new Map<string, number>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** True when the breaker of its key or of its provider is not closed: it is to be tried last. */
  holdsBack({ key, provider }: Candidate): boolean {
    const nowMs = this.#monotonicMs();
    return (
      (this.#byKey.get(key.id)?.state(nowMs) ?? 'closed') !== 'closed' || this.stateOf(provider) !== 'closed'
    );
  }

  /** Of a whole provider. */
  stateOf(provider: ProviderName): BreakerState {
    return this.#byProvider.get(provider)?.breaker.state(this.#monotonicMs()) ?? 'closed';
  }

  /** How often attempts have brought a provider into a state. */
  transitions(provider: ProviderName, to: BreakerState): number {
    return this.#transitions.get(`${provider} ${to}`) ?? 0;
  }

  /** Marks the start of an attempt: after a pause, if nobody probes the candidate, this is its probe. */
  started({ key, provider }: Candidate, startedAtMs: number): void {
    this.#byKey.get(key.id)?.begin(startedAtMs);
    const shared = this.#byProvider.get(provider);
    if (shared !== undefined) this.#move(provider, () => shared.breaker.begin(startedAtMs));
  }

  /** The candidate answers: its whole answer or the first token of its stream is there. */
  succeeded({ key, provider }: Candidate, startedAtMs: number): void {
    const own = this.#byKey.get(key.id);
    if (own?.isJudgedBy(startedAtMs)) this.#close(key.id, own);
    else own?.endProbe(startedAtMs);
    const shared = this.#byProvider.get(provider);
    if (shared?.breaker.isJudgedBy(startedAtMs))
      this.#move(provider, () => this.#byProvider.delete(provider));
    else this.#endProbeOf(provider, startedAtMs);
  }

  /** The attempt ended without a verdict on the candidate: the client left, or its own request was refused. */
  abandoned({ key, provider }: Candidate, startedAtMs: number): void {
    this.#byKey.get(key.id)?.endProbe(startedAtMs);
    this.#endProbeOf(provider, startedAtMs);
  }

  failed(
    candidate: Candidate,
    failure: AttemptFailure,
    startedAtMs: number,
    userId: string,
    tables: RoutingTables,
  ): void {
    const rules = tables.document.cooldown;
    const limited = failure.kind === 'rate-limited' && rules.after_429;
    if (!failure.blamesCandidate && !limited) {
      this.abandoned(candidate, startedAtMs);
      return;
    }
    const nowMs = this.#monotonicMs();
    const { key, provider } = candidate;
    const own = this.#byKey.get(key.id) ?? new CandidateBreaker();
    this.#byKey.set(key.id, own);
    own.endProbe(startedAtMs);
    const waitMs = limited ? (failure.retryAfterMs ?? 0) : 0;
    if (waitMs > 0) own.limit(nowMs + Math.min(waitMs, rules.longest_retry_after_seconds * 1000));
    else own.recordFailure(rules, startedAtMs, nowMs, true);
    // One user's dead server says nothing of another's, nor does a 5xx for a model that hardly anybody asks for.
    const isOfAll = failure.status === null || tables.names(provider, candidate.model);
    if (failure.blamesProvider && isOfAll && !isUserServer(provider))
      this.#blame(provider, startedAtMs, userId, rules);
    else this.#endProbeOf(provider, startedAtMs);
  }

  #blame(provider: ProviderName, startedAtMs: number, userId: string, rules: BreakerRules): void {
    const shared = this.#byProvider.get(provider) ?? { breaker: new CandidateBreaker(), users: new Set() };
    this.#byProvider.set(provider, shared);
    const { breaker, users } = shared;
    if (users.size < rules.users) users.add(userId);
    this.#move(provider, () => {
      breaker.endProbe(startedAtMs);
      breaker.recordFailure(rules, startedAtMs, this.#monotonicMs(), users.size >= rules.users);
    });
  }

  #endProbeOf(provider: ProviderName, startedAtMs: number): void {
    const shared = this.#byProvider.get(provider);
    if (shared !== undefined) this.#move(provider, () => shared.breaker.endProbe(startedAtMs));
  }

  #close(keyId: string, own: CandidateBreaker): void {
    if (own.isLimited(this.#monotonicMs())) own.close();
    else this.#byKey.delete(keyId);
  }

  /** Changes a provider's breaker, and counts the state it comes into. */
  #move(provider: ProviderName, change: () => void): void {
    const before = this.stateOf(provider);
    change();
    const after = this.stateOf(provider);
    if (after !== before)
      this.#transitions.set(`${provider} ${after}`, this.transitions(provider, after) + 1);
  }
}
