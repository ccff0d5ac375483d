/** A caller's place in a flight. */
export type FlightSeat<Value> =
  | {
      readonly kind: 'lead';
      /** Fires when nobody waits for the value any more, the leader included. Governs the work. */
      readonly signal: AbortSignal;
      /** Ends the flight; must be called once, whatever happened. Null: failed, or not to be shared. */
      land(value: Value | null): void;
    }
  | {
      readonly kind: 'follow';
      /** The leader's value; null when there is none, and the caller goes on alone. Rejects when the caller leaves. */
      readonly value: Promise<Value | null>;
    };

/** Does nothing, for a seat outside of any flight. */
const alone = (): void => undefined;

/**
 * Lets equal concurrent calls share one piece of work. The work belongs to all who wait for it: it goes on
 * while any of them is left, also when the one who began it is gone, and is aborted when the last one leaves.
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
    if (flight !== undefined) return { kind: 'follow', value: flight.follow(signal) };
    if (this.#flights.size >= this.#maxFlights) return { kind: 'lead', signal, land: alone };
    const started = new Flight<Value>(() => {
      // A newcomer must not join what has landed or is being aborted.
      if (this.#flights.get(key) === started) this.#flights.delete(key);
    });
    this.#flights.set(key, started);
    started.occupy(signal, null);
    return { kind: 'lead', signal: started.signal, land: (value) => started.land(value) };
  }
}

class Flight<Value> {
  readonly #over: () => void;
  readonly #abort = new AbortController();
  /** One per participant that is left: ends its wait. */
  readonly #waiting = new Set<(value: Value | null) => void>();
  #landed = false;

  constructor(over: () => void) {
    this.#over = over;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  follow(signal: AbortSignal): Promise<Value | null> {
    return new Promise((resolve, reject) => {
      this.occupy(signal, { resolve, reject });
    });
  }

  /** Counts a participant in until the flight lands or its signal fires. The leader waits for nothing. */
  occupy(
    signal: AbortSignal,
    promise: { resolve(value: Value | null): void; reject(reason: unknown): void } | null,
  ): void {
    const leave = (): void => {
      this.#waiting.delete(arrive);
      promise?.reject(signal.reason);
      if (this.#waiting.size > 0 || this.#landed) return;
      this.#over();
      this.#abort.abort(signal.reason);
    };
    const arrive = (value: Value | null): void => {
      signal.removeEventListener('abort', leave);
      promise?.resolve(value);
    };
    this.#waiting.add(arrive);
    signal.addEventListener('abort', leave, { once: true });
  }

  land(value: Value | null): void {
    if (this.#landed) return;
    this.#landed = true;
    this.#over();
    for (const arrive of this.#waiting) arrive(value);
    this.#waiting.clear();
  }
}
