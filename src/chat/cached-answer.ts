import { cacheKey } from '../core/cache-key.ts';
import type { Candidate } from '../core/candidate.ts';
import type { ChatCall } from '../core/chat-call.ts';
import { attemptLimitMs, modeLabel } from '../core/chat-call.ts';
import { DueTimer } from './due-timer.ts';
import type { Clock, ResponseCache } from './ports.ts';
import type { Lead } from './single-flight.ts';
import { SingleFlight } from './single-flight.ts';
import type { StoredAnswer } from './stored-answer.ts';
import { decodeStoredAnswer, encodeStoredAnswer } from './stored-answer.ts';

/** Different cacheable requests in flight at once that are shared; beyond it each goes alone. */
const maxFlights = 10_000;

/** What is being asked, beside the body: the tier, or the pinned model and key. */
function targetOf(call: ChatCall, candidates: readonly Candidate[]): string {
  const { override } = call.options;
  if (override === null) return call.tier;
  return `${override.provider}:${override.model}@${candidates[0]?.key.id ?? ''}`;
}

/** Where a cacheable request finds itself. */
export type CacheSeat =
  | { readonly kind: 'hit'; readonly answer: StoredAnswer }
  | {
      readonly kind: 'miss';
      /** Governs the upstream calls: outlives this client while others wait for the same answer. */
      readonly signal: AbortSignal;
      /** One of the two must be called, once. Null: served, but nothing to be stored and shared. */
      land(answer: StoredAnswer | null): void;
      /** Not served: whoever waits longest goes on. */
      fail(): void;
    };

/** The duty of one request to get its answer alone. */
function alone(signal: AbortSignal): CacheSeat {
  return { kind: 'miss', signal, land: () => undefined, fail: () => undefined };
}

/**
 * Opt-in look-up and store (SPEC 4.5, routing rule 4). A store that fails is a miss; equal concurrent
 * requests share one upstream call.
 */
export class AnswerCache {
  readonly #store: ResponseCache;
  readonly #monotonicMs: Clock['monotonicMs'];
  readonly #flights = new SingleFlight<StoredAnswer>(maxFlights);

  constructor(store: ResponseCache, monotonicMs: Clock['monotonicMs']) {
    this.#store = store;
    this.#monotonicMs = monotonicMs;
  }

  /**
   * A stored answer, or one that an equal request is just getting; else the duty to get it. Waits no longer
   * than an attempt of this request may take. Rejects when the caller leaves.
   */
  async board(
    call: ChatCall,
    candidates: readonly Candidate[],
    ttlSeconds: number,
    signal: AbortSignal,
  ): Promise<CacheSeat> {
    const { userId, request, options } = call;
    const target = targetOf(call, candidates);
    const key = cacheKey({ userId, residency: options.residency, mode: modeLabel(call), target, request });
    const bytes = await this.#store.get(key);
    const stored = bytes === null ? null : decodeStoredAnswer(bytes);
    if (stored !== null) return { kind: 'hit', answer: stored };
    const seat = this.#flights.board(key, signal);
    if (seat.kind === 'lead') return this.#lead(seat, key, ttlSeconds, userId);
    const patience = new DueTimer(this.#monotonicMs, seat.leave);
    patience.setDue(this.#monotonicMs() + attemptLimitMs(call));
    const end = await seat.end.finally(() => patience.clear());
    if (end.kind === 'lead') return this.#lead(end, key, ttlSeconds, userId);
    return end.value === null ? alone(signal) : { kind: 'hit', answer: end.value };
  }

  #lead(seat: Lead<StoredAnswer>, key: string, ttlSeconds: number, owner: string): CacheSeat {
    return {
      kind: 'miss',
      signal: seat.signal,
      land: (answer) => {
        // The flight lands only once the answer is stored, so whoever misses the one finds the other.
        const kept =
          answer === null
            ? Promise.resolve()
            : this.#store.set(key, encodeStoredAnswer(answer), ttlSeconds, owner);
        void kept.finally(() => seat.land(answer));
      },
      fail: seat.fail,
    };
  }
}
