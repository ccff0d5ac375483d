/** The duty to do the work of a flight. One of `land` and `fail` must be called, once, whatever happened. */
export interface Lead<Value> {
  readonly kind: 'lead';
  /** Fires when nobody waits for the value any more, the leader included. Governs the work. */
  readonly signal: AbortSignal;
  /** Ends the flight. Null: there is nothing to share, and whoever waits goes on alone. */
  land(value: Value | null): void;
  /** The work failed: whoever has waited longest leads from here, the others wait on. */
  fail(): void;
}

/** How a wait ended; a null value: the caller goes on alone. */
export type FollowEnd<Value> = Lead<Value> | { readonly kind: 'value'; readonly value: Value | null };

export interface Follow<Value> {
  readonly kind: 'follow';
  /** Rejects when the caller's signal fires. */
  readonly end: Promise<FollowEnd<Value>>;
  /** Waits no longer: `end` is a null value. */
  leave(): void;
}

/** A caller's place in a flight. */
export type FlightSeat<Value> = Lead<Value> | Follow<Value>;

/** Does nothing, for a seat outside of any flight. */
const nothing = (): void => undefined;

/**
 * Lets equal concurrent calls share one piece of work. The work belongs to all who wait for it: it goes on
 * while any of them is left, also when the one who began it is gone, and is aborted when the last one leaves.
 * When it fails it is begun anew by one of them, never by all at once.
 */
export class SingleFlight<Value> {
  readonly #maxFlights: number;
  readonly #flights = new Map<string, Flight<Value>>();

  /** Beyond `maxFlights` different keys at once, callers lead a flight of their own that nobody can join. */
  constructor(maxFlights: number) {
    this.#maxFlights = maxFlights;
  }

  /** Keys in flight now. */
  get size(): number {
    return this.#flights.size;
  }

  /**
   * The first caller of a key leads, later ones follow. A caller leaves when its own `signal` fires. Throws
   * its reason when it has fired already.
   */
  board(key: string, signal: AbortSignal): FlightSeat<Value> {
    signal.throwIfAborted();
    const flight = this.#flights.get(key);
    if (flight !== undefined) return flight.follow(signal);
    if (this.#flights.size >= this.#maxFlights) return { kind: 'lead', signal, land: nothing, fail: nothing };
    const started = new Flight<Value>(() => {
      // A newcomer must not join what has landed or is being aborted.
      if (this.#flights.get(key) === started) this.#flights.delete(key);
    });
    this.#flights.set(key, started);
    return started.lead(signal);
  }
}

/** One who is left in a flight; the leader waits for nothing. */
interface Participant<Value> {
  readonly signal: AbortSignal;
  readonly onAbort: () => void;
  resolve: ((end: FollowEnd<Value>) => void) | null;
}

class Flight<Value> {
  readonly #over: () => void;
  readonly #abort = new AbortController();
  /** In the order they came. */
  readonly #inside = new Set<Participant<Value>>();
  #leader: Participant<Value> | null = null;
  /** Why a caller was gone; one that only waits no longer has no reason of its own. */
  #lastReason: unknown;

  constructor(over: () => void) {
    this.#over = over;
  }

  lead(signal: AbortSignal): Lead<Value> {
    const leader: Participant<Value> = { signal, onAbort: () => this.#leave(leader), resolve: null };
    this.#enter(leader);
    return this.#leadBy(leader);
  }

  follow(signal: AbortSignal): Follow<Value> {
    let leave = nothing;
    const end = new Promise<FollowEnd<Value>>((resolve, reject) => {
      const follower: Participant<Value> = {
        signal,
        onAbort: () => {
          this.#leave(follower);
          reject(signal.reason);
        },
        resolve,
      };
      leave = () => {
        this.#leave(follower);
        resolve({ kind: 'value', value: null });
      };
      this.#enter(follower);
    });
    return { kind: 'follow', end, leave };
  }

  #enter(participant: Participant<Value>): void {
    this.#inside.add(participant);
    participant.signal.addEventListener('abort', participant.onAbort, { once: true });
  }

  #leave(participant: Participant<Value>): void {
    const { aborted, reason } = participant.signal;
    if (aborted) this.#lastReason = reason;
    if (!this.#remove(participant) || this.#inside.size > 0) return;
    this.#over();
    this.#abort.abort(this.#lastReason);
  }

  #remove(participant: Participant<Value>): boolean {
    participant.signal.removeEventListener('abort', participant.onAbort);
    return this.#inside.delete(participant);
  }

  #leadBy(leader: Participant<Value>): Lead<Value> {
    this.#leader = leader;
    return {
      kind: 'lead',
      signal: this.#abort.signal,
      land: (value) => {
        if (this.#leader === leader) this.#land(value);
      },
      fail: () => {
        if (this.#leader === leader) this.#succeed(leader);
      },
    };
  }

  /** Nobody leads from here: the flight is over. */
  #land(value: Value | null): void {
    this.#leader = null;
    this.#over();
    for (const participant of this.#inside) {
      this.#remove(participant);
      participant.resolve?.({ kind: 'value', value });
    }
  }

  #succeed(failed: Participant<Value>): void {
    this.#remove(failed);
    const [next] = this.#inside;
    if (next === undefined) {
      this.#land(null);
      return;
    }
    const { resolve } = next;
    next.resolve = null;
    resolve?.(this.#leadBy(next));
  }
}
