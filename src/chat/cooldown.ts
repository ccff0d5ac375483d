import { LRUCache } from 'lru-cache';
import type { Candidate } from '../core/candidate.ts';
import type { AttemptFailure } from '../core/outcome.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { RoutingTables } from '../core/tables.ts';

/** Keys whose health is remembered; the least recently used are forgotten, which only makes them healthy. */
const maxRemembered = 50_000;

/**
 * Instants are monotonic milliseconds; 0: never. Modes: *counting* (no pause yet), *paused* until
 * `pausedUntilMs`, then *waiting* for somebody to probe, *probing* while that attempt is under way.
 */
interface Health {
  failures: number;
  pausedAtMs: number;
  pausedUntilMs: number;
  pauseMs: number;
  /** When the probe began that is under way; null: there is none. */
  probeAtMs: number | null;
  /** A probe that has not ended after this long is given up on: the next one may go. */
  probePatienceMs: number;
  /** The end of a pause that the vendor asked for (Retry-After). */
  limitedUntilMs: number;
  /** For whole providers: the users that saw the trouble. */
  readonly users: Set<string>;
}

type Rules = RoutingTables['document']['cooldown'];

/** Where a whole provider stands; `half_open`: a probe is under way. */
export const circuitStates = ['closed', 'half_open', 'open'] as const;
export type CircuitState = (typeof circuitStates)[number];

const fresh = (): Health => ({
  failures: 0,
  pausedAtMs: 0,
  pausedUntilMs: 0,
  pauseMs: 0,
  probeAtMs: null,
  probePatienceMs: 0,
  limitedUntilMs: 0,
  users: new Set(),
});

/**
 * Which candidates have failed so often that they are tried last for a while. Counted per provider key, so
 * that one tenant's bad key never moves another's; per provider only when connect failures or 5xx were
 * seen by several users of one vendor. A cooled candidate is moved, never removed.
 *
 * An attempt is known by its start. What began before a pause did says nothing about the time after it, so
 * it neither ends nor prolongs that pause.
 */
export class CooldownBook {
  readonly #byKey = new LRUCache<string, Health>({ max: maxRemembered });
  readonly #byProvider = new Map<string, Health>();
  readonly #monotonicMs: () => number;
  /** How often a provider came into a state, by `<provider> <state>`. */
  readonly #transitions = new Map<string, number>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  isCooled(candidate: Candidate): boolean {
    const nowMs = this.#monotonicMs();
    return (
      isCooling(this.#byKey.get(candidate.key.id), nowMs) ||
      isCooling(this.#byProvider.get(candidate.provider), nowMs)
    );
  }

  /** `closed` also once a pause is over and nobody has tried yet: it is in its own place again. */
  circuitOf(provider: string): CircuitState {
    const health = this.#byProvider.get(provider);
    if (!isCooling(health, this.#monotonicMs())) return 'closed';
    return health !== undefined && health.probeAtMs !== null ? 'half_open' : 'open';
  }

  /** How often attempts have brought a provider into a state. */
  transitions(provider: string, to: CircuitState): number {
    return this.#transitions.get(`${provider} ${to}`) ?? 0;
  }

  /** Marks the start of an attempt: if the candidate is paused and nobody probes it, this is its probe. */
  started({ key, provider }: Candidate, startedAtMs: number): void {
    probe(this.#byKey.get(key.id), startedAtMs);
    const shared = this.#byProvider.get(provider);
    if (shared !== undefined) this.#move(provider, () => probe(shared, startedAtMs));
  }

  /** The candidate answers: its whole answer or the first token of its stream is there. */
  succeeded({ key, provider }: Candidate, startedAtMs: number): void {
    const own = this.#byKey.get(key.id);
    if (own !== undefined && startedAtMs >= own.pausedAtMs) this.#recover(key.id, own);
    const shared = this.#byProvider.get(provider);
    if (shared === undefined || startedAtMs < shared.pausedAtMs) return;
    this.#move(provider, () => this.#byProvider.delete(provider));
  }

  /** The attempt ended without a verdict on the candidate: the client left, or its own request was refused. */
  abandoned({ key, provider }: Candidate, startedAtMs: number): void {
    endProbe(this.#byKey.get(key.id), startedAtMs);
    const shared = this.#byProvider.get(provider);
    if (shared !== undefined) this.#endProbeOf(provider, shared, startedAtMs);
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
    const own = this.#byKey.get(key.id) ?? fresh();
    this.#byKey.set(key.id, own);
    endProbe(own, startedAtMs);
    const waitMs = limited ? (failure.retryAfterMs ?? 0) : 0;
    if (waitMs > 0) {
      const untilMs = nowMs + Math.min(waitMs, rules.longest_retry_after_seconds * 1000);
      own.limitedUntilMs = Math.max(own.limitedUntilMs, untilMs);
    } else {
      worsen(own, rules, startedAtMs, nowMs, true);
    }
    let shared = this.#byProvider.get(provider);
    if (!failure.blamesProvider || !isShared(provider)) {
      if (shared !== undefined) this.#endProbeOf(provider, shared, startedAtMs);
      return;
    }
    shared ??= fresh();
    this.#byProvider.set(provider, shared);
    this.#blame(provider, shared, startedAtMs, userId, rules);
  }

  #blame(provider: string, shared: Health, startedAtMs: number, userId: string, rules: Rules): void {
    if (shared.users.size < rules.users) shared.users.add(userId);
    this.#move(provider, () => {
      endProbe(shared, startedAtMs);
      worsen(shared, rules, startedAtMs, this.#monotonicMs(), shared.users.size >= rules.users);
    });
  }

  #endProbeOf(provider: string, shared: Health, startedAtMs: number): void {
    this.#move(provider, () => endProbe(shared, startedAtMs));
  }

  /** Forgets the failures of a key, but not the time its vendor asked for. */
  #recover(keyId: string, own: Health): void {
    if (this.#monotonicMs() < own.limitedUntilMs)
      this.#byKey.set(keyId, { ...fresh(), limitedUntilMs: own.limitedUntilMs });
    else this.#byKey.delete(keyId);
  }

  /** Changes a provider's health, and counts the state it comes into. */
  #move(provider: string, change: () => void): void {
    const before = this.circuitOf(provider);
    change();
    const after = this.circuitOf(provider);
    if (after !== before)
      this.#transitions.set(`${provider} ${after}`, this.transitions(provider, after) + 1);
  }
}

/** Each `self_hosted` key is a server of its own: one user's dead one says nothing of another's. */
export function isShared(provider: ProviderName): boolean {
  return provider !== 'self_hosted';
}

function isProbing(health: Health, nowMs: number): boolean {
  return health.probeAtMs !== null && nowMs < health.probeAtMs + health.probePatienceMs;
}

function probe(health: Health | undefined, startedAtMs: number): void {
  if (health === undefined || health.pausedUntilMs === 0 || isProbing(health, startedAtMs)) return;
  health.probeAtMs = startedAtMs;
}

function endProbe(health: Health | undefined, startedAtMs: number): void {
  if (health?.probeAtMs === startedAtMs) health.probeAtMs = null;
}

function isCooling(health: Health | undefined, nowMs: number): boolean {
  if (health === undefined) return false;
  if (nowMs < health.limitedUntilMs) return true;
  if (health.pausedUntilMs === 0) return false;
  return nowMs < health.pausedUntilMs || isProbing(health, nowMs);
}

function worsen(health: Health, rules: Rules, startedAtMs: number, nowMs: number, mayPause: boolean): void {
  health.failures += 1;
  if (health.failures < rules.failures || !mayPause) return;
  if (nowMs < health.pausedUntilMs || startedAtMs < health.pausedAtMs) return;
  const longestMs = rules.longest_seconds * 1000;
  health.pauseMs =
    health.pauseMs === 0 ? rules.first_seconds * 1000 : Math.min(health.pauseMs * 2, longestMs);
  health.pausedAtMs = nowMs;
  health.pausedUntilMs = nowMs + health.pauseMs;
  health.probePatienceMs = longestMs;
}
