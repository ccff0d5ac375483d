import { randomInt } from 'node:crypto';
import { SharedRoom, slotOf } from '../../core/shared-room.ts';

/** Bodies up to this size have room of their own: they must not be refused for the sake of large ones. */
export const smallBodyBytes = 64 * 1024;
/**
 * What large bodies, and small ones, may take of the heap, by their cost (http/body/body-cost.ts). With both rooms full
 * and the largest body of all besides (96 MiB), a heap of 307 MiB has 60 left for all else and for one body on its way.
 */
export const bodiesHeapShare = 3 / 16;
/**
 * What is yet to come of the bytes of a large body, wide text of two bytes a character: the text, what is parsed of it,
 * the vendor's text and its bytes. The heap's budget counts what stays of these.
 */
const copiesAhead = 4;
/** Of that room, what strangers may take: a registration is a hundred bytes. */
const strangersShare = 1 / 8;

/**
 * Of that room, what may come of bodies before it is known whose they are: a quarter for keys that were good lately,
 * a quarter for all others. Each takes up to twice its bytes, outside the heap, while it grows.
 */
const earlyShare = 1 / 4;

/** What there was not enough of for a body: room among bodies, or memory of the process. */
export type BodyShortage = 'body_bytes' | 'memory';

/** What one request brings before it is known whose it is. */
export class EarlyHold {
  readonly #room: SharedRoom;
  readonly #slot: number;
  #bytes = 0;

  constructor(room: SharedRoom, slot: number) {
    this.#room = room;
    this.#slot = slot;
  }

  /** Makes it hold so much more; false, and nothing changes, when there is no room. */
  grow(more: number): boolean {
    if (!this.#room.hasRoom(this.#slot, more)) return false;
    this.#room.move(this.#slot, more);
    this.#bytes += more;
    return true;
  }

  release(): void {
    this.#room.move(this.#slot, -this.#bytes);
    this.#bytes = 0;
  }
}

/** What one request holds of the budget: its head, and the bytes that have arrived of its body, then its cost. */
export class BodyHold {
  readonly #budget: BodyBudget;
  readonly #slot: number;
  readonly #isStranger: boolean;
  readonly #headBytes: number;
  #room: SharedRoom | null = null;
  #cost = 0;
  #released = false;
  #isKept = false;

  constructor(budget: BodyBudget, slot: number, isStranger: boolean, headBytes: number) {
    this.#budget = budget;
    this.#slot = slot;
    this.#isStranger = isStranger;
    this.#headBytes = headBytes;
  }

  /**
   * Makes it hold `bodyCost` beside its head, for a body of so many bytes; false, and nothing changes, when there is no
   * room or the request is over.
   */
  grow(bytes: number, bodyCost = bytes): boolean {
    if (this.#released) return false;
    const cost = this.#headBytes + bodyCost;
    const room = this.#roomFor(bytes, cost);
    if (typeof room === 'string') {
      this.#budget.onShortage(room);
      return false;
    }
    this.#room?.move(this.#slot, -this.#cost);
    room.move(this.#slot, cost);
    this.#room = room;
    this.#cost = cost;
    return true;
  }

  /** What came before it was known whose it is has found no room. */
  earlyLost(): void {
    if (!this.#released) this.#budget.onShortage('body_bytes');
  }

  /** Until `letGo`: what is made of the body may outlive its answer, for others who wait for the same one. */
  keep(): void {
    this.#isKept = true;
  }

  letGo(): void {
    this.#isKept = false;
    if (this.#released) this.#giveBack();
  }

  /** For good: a body that still comes in is not taken any more. */
  release(): void {
    this.#released = true;
    if (!this.#isKept) this.#giveBack();
  }

  #giveBack(): void {
    this.#room?.move(this.#slot, -this.#cost);
    this.#room = null;
    this.#cost = 0;
  }

  #roomFor(bytes: number, cost: number): SharedRoom | BodyShortage {
    const { small, large, oversize, strangers } = this.#budget.rooms;
    const slot = this.#slot;
    if (bytes > smallBodyBytes && cost > this.#cost && this.#budget.lacksMemory(copiesAhead * bytes))
      return 'memory';
    if (this.#room === oversize) return oversize;
    const room = this.#isStranger ? strangers : bytes <= smallBodyBytes ? small : large;
    const held = room === this.#room ? this.#cost : 0;
    if (room.hasRoom(slot, cost - held)) return room;
    const only = room === large && large.heldBy(slot) === held;
    return only && oversize.heldBytes === 0 ? oversize : 'body_bytes';
  }
}

/**
 * What requests with bodies cost the process, from their heads until nothing of them is needed any more. Declared
 * lengths count for nothing: what has not arrived takes no memory. Heads do: thousands of them, as large as may be,
 * with bodies that drip, would take more than all bodies may.
 */
export class BodyBudget {
  /** The room of large bodies; small ones have as much. */
  readonly limitBytes: number;
  /**
   * `oversize` takes one body at a time, whatever its size: so a body within the body limit that is larger than
   * anybody's share comes in when its sender has no other one, and holds up none but its like.
   */
  readonly rooms: Readonly<Record<'small' | 'large' | 'oversize' | 'strangers', SharedRoom>>;
  /** Apart from the others: nobody knows yet whose room it is. */
  readonly #early: Readonly<Record<'remembered' | 'unknown', SharedRoom>>;
  /** The process has none left for so many bytes, whatever these rooms have. */
  readonly lacksMemory: (bytes: number) => boolean;
  readonly #seed: number;
  /** A body was refused for want of it. */
  onShortage: (shortage: BodyShortage) => void = () => undefined;

  /** `seed`: for `slotOf`. */
  constructor(limitBytes: number, seed = randomInt(2 ** 31), lacksMemory = (_bytes: number) => false) {
    this.limitBytes = limitBytes;
    this.#seed = seed;
    this.lacksMemory = lacksMemory;
    this.rooms = {
      small: new SharedRoom(limitBytes),
      large: new SharedRoom(limitBytes),
      oversize: new SharedRoom(Number.POSITIVE_INFINITY),
      strangers: new SharedRoom(limitBytes * strangersShare),
    };
    this.#early = {
      remembered: new SharedRoom(limitBytes * earlyShare),
      unknown: new SharedRoom(limitBytes * earlyShare),
    };
  }

  /** All that is held now. */
  get heldBytes(): number {
    const { small, large, oversize, strangers } = this.rooms;
    const known = small.heldBytes + large.heldBytes + oversize.heldBytes + strangers.heldBytes;
    return known + this.#early.remembered.heldBytes + this.#early.unknown.heldBytes;
  }

  /** How full the fullest room is: 1 where nothing more comes in. */
  get fullness(): number {
    const { small, large, strangers } = this.rooms;
    const largeBytes = large.heldBytes + this.rooms.oversize.heldBytes;
    const early = Math.max(this.#early.remembered.heldBytes, this.#early.unknown.heldBytes);
    const most = Math.max(
      largeBytes,
      small.heldBytes,
      strangers.heldBytes / strangersShare,
      early / earlyShare,
    );
    return most / this.limitBytes;
  }

  /** For a request of `owner`: an account's id, or a stranger's address. `headBytes`: what its head costs. */
  open(owner: string, isStranger: boolean, headBytes = 0): BodyHold {
    return new BodyHold(this, slotOf(owner, this.#seed), isStranger, headBytes);
  }

  /**
   * For a request whose account is being looked up. A key that was good lately shares room with such keys, whoever
   * sends it; all others with their like, by the client's network.
   */
  openEarly(keyHash: string, network: string, isRemembered: boolean): EarlyHold {
    return isRemembered
      ? new EarlyHold(this.#early.remembered, slotOf(keyHash, this.#seed))
      : new EarlyHold(this.#early.unknown, slotOf(network, this.#seed));
  }
}
