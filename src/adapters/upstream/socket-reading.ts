import type { Socket } from 'node:net';
import type { ReadingTurns, TurnReader } from './reading-turns.ts';

/** Whether a socket is read: not while whoever takes what comes has had enough, nor while its turn is over. */
export class SocketReading implements TurnReader {
  place = -1;
  readTurn = -1;
  readonly #turns: ReadingTurns;
  #socket: Socket | null = null;
  #paused = false;
  #held = false;

  constructor(turns: ReadingTurns) {
    this.#turns = turns;
  }

  get isOn(): boolean {
    return !this.#paused && !this.#held;
  }

  /** An answer is to come on it. */
  begin(socket: Socket): void {
    this.#socket = socket;
    this.#turns.enter(this);
  }

  /** It was read between these two, in monotonic milliseconds, to the end of its answer perhaps. */
  took(fromMs: number, toMs: number): void {
    this.#turns.wasRead(this, fromMs, toMs);
  }

  /** The answer is over; what else comes is seen at once. */
  end(): void {
    this.#turns.leave(this);
    this.resume();
    this.#socket = null;
  }

  pause(): void {
    this.#paused = true;
    this.#socket?.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (!this.#held) this.#socket?.resume();
  }

  hold(): void {
    this.#held = true;
    this.#socket?.pause();
  }

  letGo(): void {
    if (!this.#held) return;
    this.#held = false;
    if (!this.#paused) this.#socket?.resume();
  }
}
