import type { CancelReason } from '../core/outcome.ts';
import type { CancelSignal } from './cancellation.ts';
import { Cancellation } from './cancellation.ts';

/** The duty to get the value. One of `resolve` and `reject` must be called, once, whatever happened. */
export interface Leader<Value> {
  readonly kind: 'leader';
  /** Fires when nobody waits for the value any more, the leader included. Governs the work. */
  readonly signal: CancelSignal;
  /** Ends the request for all. Null: there is nothing to share, and whoever waits goes on alone. */
  resolve(value: Value | null): void;
  /** The work failed: whoever has waited longest leads from here, the others wait on. */
  reject(): void;
}

/** How a wait ended; a null value: the caller goes on alone. */
export type FollowerResult<Value> = Leader<Value> | { readonly kind: 'value'; readonly value: Value | null };

export interface Follower<Value> {
  readonly kind: 'follower';
  /** Rejects when the caller's signal fires. */
  readonly result: Promise<FollowerResult<Value>>;
  /** Waits no longer: `result` is a null value. */
  leave(): void;
}

/** A caller's part in a request that is in flight. */
export type Joined<Value> = Leader<Value> | Follower<Value>;

/** So many go on in one turn of the event loop: each may have a tenth of a millisecond to do next. */
const toldAtOnce = 32;

/** Does nothing, for a caller that shares with nobody. */
const nothing = (): void => undefined;

/**
 * Lets equal concurrent calls share one piece of work. The work belongs to all who wait for it: it goes on
 * while any of them is left, also when the one who began it is gone, and is aborted when the last one leaves.
 * When it fails it is begun anew by one of them, never by all at once.
 */
export class InFlightRequests<Value> {
  readonly #max: number;
  readonly #inFlight = new Map<string, InFlight<Value>>();

  /** Beyond `max` different keys at once, callers go alone: nobody can join them. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Keys in flight now. */
  get size(): number {
    return this.#inFlight.size;
  }

  /**
   * The first caller of a key leads, later ones follow. A caller leaves when its own `signal` fires. Throws
   * its reason when it has fired already.
   */
  join(key: string, signal: CancelSignal): Joined<Value> {
    if (signal.aborted) throw signal.reason;
    const inFlight = this.#inFlight.get(key);
    if (inFlight !== undefined) return inFlight.follow(signal);
    if (this.#inFlight.size >= this.#max)
      return { kind: 'leader', signal, resolve: nothing, reject: nothing };
    const started = new InFlight<Value>(() => {
      // A newcomer must not join what is resolved or being aborted.
      if (this.#inFlight.get(key) === started) this.#inFlight.delete(key);
    });
    this.#inFlight.set(key, started);
    return started.lead(signal);
  }
}

/** One who has joined; the leader waits for nothing. */
interface Participant<Value> {
  readonly signal: CancelSignal;
  readonly onAbort: () => void;
  resolve: ((end: FollowerResult<Value>) => void) | null;
}

class InFlight<Value> {
  readonly #over: () => void;
  readonly #cancellation = new Cancellation();
  /** In the order they came. */
  readonly #inside = new Set<Participant<Value>>();
  /** Null once it is resolved. */
  #leader: Participant<Value> | null = null;
  /** Why a caller was gone; one that only waits no longer has no reason of its own, and nobody is there for it. */
  #lastReason: CancelReason = 'client-gone';

  constructor(over: () => void) {
    this.#over = over;
  }

  lead(signal: CancelSignal): Leader<Value> {
    const leader: Participant<Value> = { signal, onAbort: () => this.#leave(leader), resolve: null };
    this.#enter(leader);
    return this.#leadBy(leader);
  }

  follow(signal: CancelSignal): Follower<Value> {
    let leave = nothing;
    const result = new Promise<FollowerResult<Value>>((resolve, reject) => {
      const follower: Participant<Value> = {
        signal,
        onAbort: () => {
          this.#leave(follower);
          reject(signal.reason);
        },
        resolve,
      };
      leave = () => {
        if (this.#isResolved) return;
        this.#leave(follower);
        resolve({ kind: 'value', value: null });
      };
      this.#enter(follower);
    });
    return { kind: 'follower', result, leave };
  }

  /** All who are inside are told, within some turns of the event loop: there is nothing to wait for any more. */
  get #isResolved(): boolean {
    return this.#leader === null;
  }

  #enter(participant: Participant<Value>): void {
    this.#inside.add(participant);
    participant.signal.addEventListener('abort', participant.onAbort);
  }

  #leave(participant: Participant<Value>): void {
    this.#lastReason = participant.signal.reason ?? this.#lastReason;
    if (!this.#remove(participant) || this.#inside.size > 0 || this.#isResolved) return;
    this.#over();
    this.#cancellation.abort(this.#lastReason);
  }

  #remove(participant: Participant<Value>): boolean {
    participant.signal.removeEventListener('abort', participant.onAbort);
    return this.#inside.delete(participant);
  }

  #leadBy(leader: Participant<Value>): Leader<Value> {
    this.#leader = leader;
    return {
      kind: 'leader',
      signal: this.#cancellation,
      resolve: (value) => {
        if (this.#leader === leader) this.#resolve(value);
      },
      reject: () => {
        if (this.#leader === leader) this.#succeed(leader);
      },
    };
  }

  /** Nobody leads from here: it is over. */
  #resolve(value: Value | null): void {
    this.#leader = null;
    this.#over();
    this.#tell(value);
  }

  #tell(value: Value | null): void {
    let left = toldAtOnce;
    for (const participant of this.#inside) {
      if (left === 0) {
        setImmediate(() => this.#tell(value));
        return;
      }
      left -= 1;
      this.#remove(participant);
      participant.resolve?.({ kind: 'value', value });
    }
  }

  #succeed(failed: Participant<Value>): void {
    this.#remove(failed);
    const [next] = this.#inside;
    if (next === undefined) {
      this.#resolve(null);
      return;
    }
    const { resolve } = next;
    next.resolve = null;
    resolve?.(this.#leadBy(next));
  }
}
