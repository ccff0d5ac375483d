import type { CancelReason } from '../core/outcome.ts';
import type { Placed } from '../core/placed-list.ts';
import { PlacedList } from '../core/placed-list.ts';
import type { BodyBudget } from './body-budget.ts';
import { KeptConnections } from './kept-connections.ts';
import type { UnreadAnswers } from './unread-answers.ts';

/** One chat request under way. */
export interface ActiveRequest extends Placed {
  abort(reason: CancelReason): void;
  /** Bytes written to the client that it has not taken yet. */
  readonly bufferedBytes: number;
}

/**
 * Where the process stands between its first request and its last: who is being served, and whether new
 * work is taken.
 */
export class Life {
  readonly #active = new PlacedList<ActiveRequest>();
  /** What request bodies may take of the memory, and take now. */
  readonly bodies: BodyBudget;
  /** Connections of the API's listener. */
  readonly connections = new KeptConnections();
  /** Whole answers that their clients have not taken yet. */
  readonly unread: UnreadAnswers;
  /** Requests on the API's listener under way, those that are being refused included. */
  requestCount = 0;
  /** Chat requests whose row is not settled yet; their clients may have left. */
  unsettled = 0;
  /** SIGTERM was seen: readiness is off, requests are still served. */
  draining = false;
  /** Too little of the drain is left for new chat requests: they are refused. */
  closing = false;

  constructor(bodies: BodyBudget, unread: UnreadAnswers) {
    this.bodies = bodies;
    this.unread = unread;
  }

  /** Answers carry `Connection: close`, so that kept-alive clients move on before they would be refused. */
  get leaving(): boolean {
    return this.draining;
  }

  /** Chat requests under way. */
  get activeCount(): number {
    return this.#active.length;
  }

  /** What slow clients have left in our memory. */
  get bufferedBytes(): number {
    let bytes = 0;
    for (const one of this.#active.entries) bytes += one.bufferedBytes;
    return bytes;
  }

  add(one: ActiveRequest): void {
    this.#active.add(one);
  }

  remove(one: ActiveRequest): void {
    this.#active.remove(one);
  }

  /** The grace period is over: whoever is left gets an error event. */
  cutAll(): void {
    for (const one of [...this.#active.entries]) one.abort('drain');
  }
}
