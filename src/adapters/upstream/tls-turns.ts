import { LRUCache } from 'lru-cache';
import { FairQueue } from '../../core/fair-queue.ts';

/** TLS may take one turn of the event loop so long. */
const longestTurnMs = 25;
/** A handshake's piece that takes longer makes its server a dear one: verifying a company's chain takes 1 to 2 ms. */
const dearMs = 5;
/**
 * Handshakes that may be dear rest for so many times what the last dear one took: a chain is one piece, takes up to
 * 65 ms, and fifteen a second would take all there is.
 */
const restFactor = 4;
/** Networks that are remembered, those of late; what is forgotten is unknown again. */
const mostNetworks = 10_000;
/** So long behind its last dear piece a network is no longer a dear one: a busy process makes an honest one dear. */
const dearForMs = 60_000;

/** What a connection has to hand to TLS. */
export interface TlsPiece {
  /** Part of a handshake, which costs whatever the server's keys make it cost; what comes later costs by its bytes. */
  readonly isHandshake: boolean;
  /**
   * Where its server stands; null where nobody knows. Names are nothing to go by: one zone has as many as its owner
   * likes, while everybody has few networks.
   */
  readonly network: string | null;
  /** Hands to TLS what has come. */
  feed(): void;
}

/** One piece of each connection after the other, for so long in a turn: OpenSSL works on each without a break. */
export class TlsTurns {
  readonly #waiting: TlsPiece[] = [];
  /** When networks whose handshakes were cheap may be believed to be so; a dear piece puts it off. */
  readonly #cheapFromMs = new LRUCache<string, number>({ max: mostNetworks });
  /** Handshakes with all others, while there is a rest. */
  readonly #resting: TlsPiece[] = [];
  #rest: NodeJS.Timeout | null = null;
  #spentMs = 0;
  #ends = false;

  /** Fed now, or in a later turn where this one has no time left. */
  enter(piece: TlsPiece): void {
    this.#waiting.push(piece);
    this.#feedSome();
  }

  #feedSome(): void {
    while (this.#spentMs < longestTurnMs) {
      const piece = this.#waiting.shift();
      if (piece === undefined) return;
      const beganMs = performance.now();
      if (this.#rest !== null && piece.isHandshake && !this.#isCheap(piece, beganMs)) {
        this.#resting.push(piece);
        continue;
      }
      // As it was: with this piece the handshake may be over.
      const { isHandshake } = piece;
      piece.feed();
      const endedMs = performance.now();
      this.#spentMs += endedMs - beganMs;
      if (isHandshake) this.#learn(piece, endedMs - beganMs, endedMs);
      if (!this.#ends) setImmediate(this.#end);
      this.#ends = true;
    }
  }

  #isCheap({ network }: TlsPiece, nowMs: number): boolean {
    return network !== null && nowMs >= (this.#cheapFromMs.get(network) ?? Infinity);
  }

  #learn({ network, isHandshake }: TlsPiece, tookMs: number, nowMs: number): void {
    if (tookMs > dearMs) {
      if (network !== null) this.#cheapFromMs.set(network, nowMs + dearForMs);
      this.#rest ??= setTimeout(this.#wake, restFactor * tookMs);
    } else if (!isHandshake && network !== null && !this.#cheapFromMs.has(network)) {
      this.#cheapFromMs.set(network, nowMs);
    }
  }

  readonly #wake = (): void => {
    this.#rest = null;
    // Those of whom nothing is known first: dear ones are as many as somebody has networks.
    const [unknown, dear] = [new FairQueue<TlsPiece>(), new FairQueue<TlsPiece>()];
    for (const piece of this.#resting.splice(0)) {
      const network = piece.network ?? '';
      (this.#cheapFromMs.has(network) ? dear : unknown).add(network, piece);
    }
    for (const queue of [unknown, dear])
      for (let piece = queue.take(); piece !== null; piece = queue.take()) this.#waiting.push(piece);
    this.#feedSome();
  };

  readonly #end = (): void => {
    this.#ends = false;
    this.#spentMs = 0;
    this.#feedSome();
  };
}
