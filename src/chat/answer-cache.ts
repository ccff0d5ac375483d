import type { Candidate } from '../core/candidate.ts';
import type { CacheKeyParts } from '../core/request/cache-key.ts';
import { cachedFor, cacheKey } from '../core/request/cache-key.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import { attemptLimitMs, modeLabel } from '../core/request/chat-call.ts';
import { DueTimer } from '../due-timer.ts';
import { isLargeAnswer } from './answer-budget.ts';
import type { CancelSignal } from './cancellation.ts';
import type { Follower, Leader } from './in-flight-requests.ts';
import { InFlightRequests } from './in-flight-requests.ts';
import { KnownCacheKeys } from './known-cache-keys.ts';
import type { LaterTurns } from './later-turn.ts';
import { longestOfOneTurn } from './later-turn.ts';
import type { CacheOwner, Clock, ResponseCache } from './ports.ts';
import type { StoredAnswer } from './stored-answer.ts';
import { decodeStoredAnswer, encodeStoredAnswer } from './stored-answer.ts';

/**
 * Different cacheable requests in flight at once that are shared, more than a pod of the chart's defaults has places
 * for; beyond it each goes alone.
 */
const maxInFlight = 10_000;

/** What is being asked, beside the body: the tier, or the pinned model and key. */
function targetOf(call: ChatCall, candidates: readonly Candidate[]): string {
  const { override } = call.options;
  if (override === null) return call.tier;
  return `${override.provider}:${override.model}@${candidates[0]?.key.id ?? ''}`;
}

/**
 * The text goes with the return: a request that waits for its answer must not keep a second copy of itself. Writing it,
 * hashing it and what follows are a turn each where it is long.
 */
function keyOf(parts: CacheKeyParts, later: LaterTurns): string | Promise<string> {
  const text = cachedFor(parts);
  return text.length > longestOfOneTurn ? hashedLater(text, later) : cacheKey(text);
}

async function hashedLater(text: string, later: LaterTurns): Promise<string> {
  await later.turn();
  const key = cacheKey(text);
  await later.turn();
  return key;
}

function ownerOf({ userId, tables }: ChatCall): CacheOwner {
  return { userId, mostBytes: tables.document.limits.cache_user_bytes };
}

/** What a cacheable request finds. */
export type CacheLookup = CacheHit | CacheMiss;

interface CacheHit {
  readonly kind: 'hit';
  readonly answer: StoredAnswer;
}

/** The duty to get the answer. */
export interface CacheMiss {
  readonly kind: 'miss';
  /** Governs the upstream calls: outlives this client while others wait for the same answer. */
  readonly signal: CancelSignal;
  /** One of the two must be called, once. Null: answered, but nothing to be stored and shared. */
  resolve(answer: StoredAnswer | null): void;
  /** Not answered: whoever waits longest goes on. */
  reject(): void;
}

/** The duty of one request to get its answer alone. */
function alone(signal: CancelSignal): CacheLookup {
  return { kind: 'miss', signal, resolve: () => undefined, reject: () => undefined };
}

/**
 * Opt-in look-up and store (SPEC 4.5, routing rule 4). A store that fails is a miss; equal concurrent
 * requests share one upstream call.
 */
export class AnswerCache {
  readonly #store: ResponseCache;
  readonly #monotonicMs: Clock['monotonicMs'];
  readonly #later: LaterTurns;
  readonly #reportBug: (cause: unknown) => void;
  /** Resolves when the last one who waits for a turn to parse an answer has had it. */
  #parsing: Promise<void> = Promise.resolve();
  readonly #known = new KnownCacheKeys();
  readonly #inFlight = new InFlightRequests<StoredAnswer>(maxInFlight);

  constructor(
    store: ResponseCache,
    monotonicMs: Clock['monotonicMs'],
    later: LaterTurns,
    reportBug: (cause: unknown) => void,
  ) {
    this.#store = store;
    this.#reportBug = reportBug;
    this.#monotonicMs = monotonicMs;
    this.#later = later;
  }

  /**
   * A stored answer, or one that an equal request is just getting; else the duty to get it. Waits no longer
   * than an attempt of this request may take. Null when the caller left in the meantime. At once where the store
   * answers at once and the request is short.
   */
  join(
    call: ChatCall,
    candidates: readonly Candidate[],
    ttlSeconds: number,
    signal: CancelSignal,
  ): CacheLookup | null | Promise<CacheLookup | null> {
    const { userId, request, options } = call;
    const target = targetOf(call, candidates);
    const parts = { userId, options, mode: modeLabel(call), target, request };
    const { bodyText, tables } = call;
    const found =
      bodyText === null ? keyOf(parts, this.#later) : this.#known.keyOf(parts, tables.hash, bodyText);
    if (typeof found !== 'string') return this.#joinLater(found, call, ttlSeconds, signal);
    const bytes = this.#store.get(found, userId);
    if (bytes instanceof Promise) return this.#joinLater(found, call, ttlSeconds, signal, bytes);
    return this.#found(bytes, found, call, ttlSeconds, signal);
  }

  async #joinLater(
    key: string | Promise<string>,
    call: ChatCall,
    ttlSeconds: number,
    signal: CancelSignal,
    bytes?: Promise<Buffer | null>,
  ): Promise<CacheLookup | null> {
    const name = await key;
    return this.#found(await (bytes ?? this.#store.get(name, call.userId)), name, call, ttlSeconds, signal);
  }

  #found(
    bytes: Buffer | null,
    key: string,
    call: ChatCall,
    ttlSeconds: number,
    signal: CancelSignal,
  ): CacheLookup | null | Promise<CacheLookup | null> {
    const answer = bytes === null ? null : decodeStoredAnswer(bytes);
    return answer === null ? this.#share(key, call, ttlSeconds, signal) : this.#take(answer, call, signal);
  }

  /** One that goes out as a stream is parsed: a crowd of large ones must not hold up others' large bodies. */
  #take(
    answer: StoredAnswer,
    call: ChatCall,
    signal: CancelSignal,
  ): CacheLookup | Promise<CacheLookup | null> {
    const hit: CacheLookup = { kind: 'hit', answer };
    const isParsed = call.request.stream === true;
    if (!isParsed || !isLargeAnswer(answer.completion.bytes, answer.values)) return hit;
    this.#parsing = this.#parsing.then(() => this.#later.turn());
    return this.#parsing.then(() => (signal.aborted ? null : hit));
  }

  /** An answer that is not stored: an equal request's that is under way, or the duty to get it. */
  #share(
    key: string,
    call: ChatCall,
    ttlSeconds: number,
    signal: CancelSignal,
  ): CacheLookup | null | Promise<CacheLookup | null> {
    if (signal.aborted) return null;
    const joined = this.#inFlight.join(key, signal);
    if (joined.kind === 'leader') return this.#lead(joined, key, ttlSeconds, ownerOf(call));
    return this.#follow(joined, key, call, ttlSeconds, signal);
  }

  async #follow(
    joined: Follower<StoredAnswer>,
    key: string,
    call: ChatCall,
    ttlSeconds: number,
    signal: CancelSignal,
  ): Promise<CacheLookup | null> {
    const patience = new DueTimer(this.#monotonicMs, joined.leave);
    patience.setDue(this.#monotonicMs() + attemptLimitMs(call));
    try {
      const result = await joined.result;
      if (result.kind === 'leader') return this.#lead(result, key, ttlSeconds, ownerOf(call));
      const { value: answer } = result;
      return answer === null ? alone(signal) : await this.#take(answer, call, signal);
    } catch (reason) {
      if (signal.aborted) return null;
      throw reason;
    } finally {
      patience.clear();
    }
  }

  #lead(leader: Leader<StoredAnswer>, key: string, ttlSeconds: number, owner: CacheOwner): CacheLookup {
    return {
      kind: 'miss',
      signal: leader.signal,
      resolve: (answer) => {
        // It resolves for the others only once the answer is stored, so whoever misses the one finds the other.
        const kept = answer === null ? Promise.resolve() : this.#keep(key, answer, ttlSeconds, owner);
        void kept.then(() => leader.resolve(answer));
      },
      reject: leader.reject,
    };
  }

  /** Never rejects: what the store throws all the same is a bug, and none of the answer, which its client has. */
  async #keep(key: string, answer: StoredAnswer, ttlSeconds: number, owner: CacheOwner): Promise<void> {
    try {
      await this.#store.set(key, encodeStoredAnswer(answer), ttlSeconds, owner);
    } catch (bug) {
      this.#reportBug(bug);
    }
  }
}
