import { randomInt } from 'node:crypto';
import { FairPlaces } from '../core/fair-places.ts';
import type { CancelReason } from '../core/outcome.ts';
import type { Placed } from '../core/placed-list.ts';
import { PlacedList } from '../core/placed-list.ts';
import { slotOf } from '../core/shared-room.ts';
import type { UnreadAnswers } from './answers/unread-answers.ts';
import type { BodyBudget } from './body/body-budget.ts';
import { KeptConnections } from './connections/kept-connections.ts';

/**
 * Chat requests are as many as connections at most. Whoever asks gets a place while half of them are free:
 * a lone user is held back by nothing else, and nobody can take the places of all others.
 */
const openPlacesShare = 1 / 2;
/** With fewer requests under way there is no load to shed: what is slow or large then is the machine. */
const fewRequests = 8;

/** Of the whole process. */
export interface MemoryRoom {
  /** There is none left for so many bytes more. */
  lacks(bytes: number): boolean;
}
const endless: MemoryRoom = { lacks: () => false };

/** One chat request under way. */
export interface ActiveRequest extends Placed {
  abort(reason: CancelReason): void;
  /** Bytes written to the client that it has not taken yet. */
  readonly bufferedBytes: number;
}

/**
 * `draining`: SIGTERM was seen, readiness is off, requests are still served, and answers carry `Connection: close`, so
 * that kept-alive clients move on before they would be refused. `closing`: too little of the drain is left for new chat
 * requests, they are refused.
 */
export type Phase = 'serving' | 'draining' | 'closing';
const phaseAfter: Readonly<Record<Phase, Phase | null>> = {
  serving: 'draining',
  draining: 'closing',
  closing: null,
};

/**
 * Where the process stands between its first request and its last: who is being served, and whether new
 * work is taken.
 */
export class Life {
  readonly #active = new PlacedList<ActiveRequest>();
  readonly #places: FairPlaces;
  readonly #seed = randomInt(2 ** 31);
  /** What request bodies may take of the memory, and take now. */
  readonly bodies: BodyBudget;
  /** Connections of the API's listener. */
  readonly connections = new KeptConnections();
  /** Whole answers that their clients have not taken yet. */
  readonly unread: UnreadAnswers;
  readonly #memory: MemoryRoom;
  /** Requests on the API's listener under way, those that are being refused included. */
  requestCount = 0;
  /** Chat requests whose row is not settled yet; their clients may have left. */
  unsettled = 0;
  /** The grace period is over: for those whose requests have not come whole. */
  onCut: () => void = () => undefined;
  #phase: Phase = 'serving';

  /** `places`: chat requests that may be under way. */
  constructor(
    bodies: BodyBudget,
    unread: UnreadAnswers,
    places = Number.MAX_SAFE_INTEGER,
    memory: MemoryRoom = endless,
  ) {
    this.#memory = memory;
    this.#places = new FairPlaces(places, places, openPlacesShare);
    this.bodies = bodies;
    this.unread = unread;
  }

  /** There is load that can be shed. */
  get isBusy(): boolean {
    return this.requestCount >= fewRequests;
  }

  /** The process would hold more than it may with so many bytes more, and less if fewer requests came. */
  lacksMemory(bytes: number): boolean {
    return this.isBusy && this.#memory.lacks(bytes);
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** One after the other, and none of them twice. */
  to(phase: Phase): void {
    if (phaseAfter[this.#phase] !== phase)
      throw new Error(`a process that is ${this.#phase} cannot be ${phase}`);
    this.#phase = phase;
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

  /** A place for a chat request of this user; null: it has its share. To be given back with `leave`. */
  enter(userId: string): number | null {
    const slot = slotOf(userId, this.#seed);
    return this.#places.take(slot) ? slot : null;
  }

  leave(place: number): void {
    this.#places.give(place);
  }

  add(one: ActiveRequest): void {
    this.#active.add(one);
  }

  remove(one: ActiveRequest): void {
    this.#active.remove(one);
  }

  /** The grace period is over: whoever is left gets an error event. How many these were. */
  cutAll(): number {
    const left = [...this.#active.entries];
    for (const one of left) one.abort('drain');
    this.onCut();
    return left.length;
  }
}
