import { LRUCache } from 'lru-cache';
import type { Candidate } from '../core/candidate.ts';
import type { AttemptFailure } from '../core/outcome.ts';
import type { RoutingTables } from '../core/tables.ts';

/** Keys whose health is remembered; the least recently used are forgotten, which only makes them healthy. */
const maxRemembered = 50_000;

interface Health {
  failures: number;
  cooledUntilMs: number;
  coolMs: number;
  /** A probe is under way: until it ends the others still see the candidate as cooled. */
  probing: boolean;
  /** For whole providers: the users that saw the trouble. */
  readonly users: Set<string>;
}

/** Where a whole provider stands; `half_open`: a probe is under way. */
export const circuitStates = ['closed', 'half_open', 'open'] as const;
export type CircuitState = (typeof circuitStates)[number];

const fresh = (): Health => ({ failures: 0, cooledUntilMs: 0, coolMs: 0, probing: false, users: new Set() });

/**
 * Which candidates have failed so often that they are tried last for a while. Counted per provider key, so
 * that one tenant's bad key never moves another's; per provider only when connect failures or 5xx were
 * seen by several users. A cooled candidate is moved, never removed.
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
    return health?.probing === true ? 'half_open' : 'open';
  }

  /** How often attempts have brought a provider into a state. */
  transitions(provider: string, to: CircuitState): number {
    return this.#transitions.get(`${provider} ${to}`) ?? 0;
  }

  /** Marks the start of an attempt: if the candidate's pause is over, this attempt is its probe. */
  started(candidate: Candidate): void {
    probe(this.#byKey.get(candidate.key.id));
    if (this.#byProvider.has(candidate.provider)) {
      this.#move(candidate.provider, () => probe(this.#byProvider.get(candidate.provider)));
    }
  }

  succeeded(candidate: Candidate): void {
    this.#byKey.delete(candidate.key.id);
    if (this.#byProvider.has(candidate.provider)) {
      this.#move(candidate.provider, () => this.#byProvider.delete(candidate.provider));
    }
  }

  /** The attempt ended without a verdict on the candidate: the client left, or its own request was refused. */
  abandoned(candidate: Candidate): void {
    const own = this.#byKey.get(candidate.key.id);
    if (own !== undefined) own.probing = false;
    this.#endProbe(candidate.provider);
  }

  failed(candidate: Candidate, failure: AttemptFailure, userId: string, tables: RoutingTables): void {
    const rules = tables.document.cooldown;
    const counts = failure.blamesCandidate || (failure.kind === 'rate-limited' && rules.after_429);
    if (!counts) {
      this.abandoned(candidate);
      return;
    }
    const nowMs = this.#monotonicMs();
    const health = this.#byKey.get(candidate.key.id) ?? fresh();
    this.#byKey.set(candidate.key.id, health);
    worsen(health, rules, nowMs, true);
    if (!failure.blamesProvider) {
      this.#endProbe(candidate.provider);
      return;
    }
    const shared = this.#byProvider.get(candidate.provider) ?? fresh();
    this.#byProvider.set(candidate.provider, shared);
    if (shared.users.size < rules.users) shared.users.add(userId);
    this.#move(candidate.provider, () => worsen(shared, rules, nowMs, shared.users.size >= rules.users));
  }

  #endProbe(provider: string): void {
    const shared = this.#byProvider.get(provider);
    if (shared === undefined) return;
    this.#move(provider, () => {
      shared.probing = false;
    });
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

function probe(health: Health | undefined): void {
  if (health !== undefined && health.cooledUntilMs > 0) health.probing = true;
}

function isCooling(health: Health | undefined, nowMs: number): boolean {
  if (health === undefined || health.cooledUntilMs === 0) return false;
  return nowMs < health.cooledUntilMs || health.probing;
}

function worsen(
  health: Health,
  rules: RoutingTables['document']['cooldown'],
  nowMs: number,
  mayCool: boolean,
): void {
  health.failures += 1;
  health.probing = false;
  if (health.failures < rules.failures || !mayCool || nowMs < health.cooledUntilMs) return;
  const firstMs = rules.first_seconds * 1000;
  health.coolMs = health.coolMs === 0 ? firstMs : Math.min(health.coolMs * 2, rules.longest_seconds * 1000);
  health.cooledUntilMs = nowMs + health.coolMs;
}
