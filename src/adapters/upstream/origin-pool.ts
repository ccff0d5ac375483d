import { PlacedList } from '../../core/placed-list.ts';
import type { AfterNextPoll, PollWaiter } from './after-next-poll.ts';
import { ConnectError } from './connect-error.ts';
import type { OpenSocket } from './connection.ts';
import { Connection } from './connection.ts';
import type { ConnectionOwner, WaitingCall } from './connection-owner.ts';
import type { ConnectionPool, PoolSettings } from './connection-pool.ts';
import type { ReadingTurns } from './reading-turns.ts';
import type { PoolStats } from './upstream-connections.ts';

/** The vendor's own limit runs from its last byte: we close this much before it. */
const hintMarginMs = 2_000;
/**
 * Calls given up without a byte, on as many connections and with nothing received on any other, until the idle ones are
 * closed as dead. One alone may have had a short limit of its own: its user would cost all others their connections.
 * An answer that stops halfway tells alone.
 */
const silencesThatTell = 2;

/**
 * So many connections are made to their end for nobody: where connecting hangs, each call that is given up would
 * leave a socket for as long as that may take.
 */
const mostAhead = 32;

/** The sockets to one origin. Nobody waits for a free one: each call has its own. */
export class OriginPool implements ConnectionOwner, ConnectionPool, PollWaiter {
  heardAtMs = 0;
  readonly #open: OpenSocket;
  readonly #limits: PoolSettings;
  readonly #monotonicMs: () => number;
  readonly #looked: AfterNextPoll;
  readonly #turns: ReadingTurns;
  /** Those idle the longest first: the one used last is used next, so that the others can grow old. */
  readonly #idle: Connection[] = [];
  /** Until the next poll is over: of each its end is known then. */
  readonly #waiting: WaitingCall[] = [];
  /** All of them. */
  readonly #all = new PlacedList<Connection>();
  /** Of those that are being made: nobody waits for them. */
  readonly #ahead = new Set<Connection>();
  #silences = 0;
  #silentAtMs = 0;
  #closed = false;

  constructor(
    open: OpenSocket,
    limits: PoolSettings,
    monotonicMs: () => number,
    looked: AfterNextPoll,
    turns: ReadingTurns,
  ) {
    this.#open = open;
    this.#limits = limits;
    this.#monotonicMs = monotonicMs;
    this.#looked = looked;
    this.#turns = turns;
  }

  get stats(): PoolStats {
    let opening = 0;
    for (const { state } of this.#all.entries) if (state === 'opening') opening += 1;
    const connected = this.#all.length - opening;
    return {
      connected,
      running: connected - this.#idle.length,
      pending: opening - this.#ahead.size + this.#waiting.length,
    };
  }

  get idleSinceMs(): number {
    return this.#idle[0]?.idleSinceMs ?? Number.POSITIVE_INFINITY;
  }

  closeOldestIdle(): void {
    this.#idle[0]?.destroy();
  }

  /** Finds a connection for a call: an idle one that proves to be open, else a new one. */
  take(call: WaitingCall): void {
    if (this.#idle.length === 0) {
      this.#connect(call);
      return;
    }
    this.#waiting.push(call);
    this.#looked.add(this);
  }

  onPolled(): void {
    while (this.#waiting.length > 0) {
      const call = this.#waiting[0] as WaitingCall;
      const connection = call.isOver ? null : this.#takeLooked();
      if (!call.isOver && connection === null && this.#idle.length > 0) {
        // What became idle in this very turn has to be looked at first.
        this.#looked.add(this);
        return;
      }
      this.#waiting.shift();
      if (connection !== null) call.onConnection(connection);
      else if (!call.isOver) this.#connect(call);
    }
  }

  keepOpening(connection: Connection): boolean {
    if (!this.#limits.connectsAhead || this.#ahead.size >= mostAhead) return false;
    this.#ahead.add(connection);
    return true;
  }

  onFree(connection: Connection): void {
    if (this.#ahead.size > 0) this.#ahead.delete(connection);
    connection.idleSinceMs = this.#monotonicMs();
    connection.idleSinceTurn = this.#looked.turn;
    if (this.#closed || this.#keepUntilMs(connection) <= connection.idleSinceMs) {
      connection.destroy();
      return;
    }
    this.#idle.push(connection);
  }

  onClosed(connection: Connection): void {
    this.#ahead.delete(connection);
    this.#all.remove(connection);
    const at = this.#idle.lastIndexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  onSilent(sinceMs: number, midAnswer: boolean): void {
    // Others were answered meanwhile: the path is sound.
    if (this.heardAtMs > sinceMs) return;
    if (this.heardAtMs >= this.#silentAtMs) this.#silences = 0;
    this.#silentAtMs = this.#monotonicMs();
    this.#silences += 1;
    // A vendor may think for long before it answers, and hardly ever in the middle of it.
    if (this.#silences < silencesThatTell && !midAnswer) return;
    for (const connection of this.#idle.slice()) if (connection.idleSinceMs <= sinceMs) connection.destroy();
  }

  /** Closes what has been idle for too long. */
  sweep(nowMs: number): void {
    for (const connection of this.#idle.slice()) {
      if (this.#keepUntilMs(connection) <= nowMs) connection.destroy();
    }
  }

  async destroy(): Promise<void> {
    this.#closed = true;
    for (const connection of this.#all.entries.slice()) connection.cut();
    for (const call of this.#waiting.splice(0)) call.onConnectError(new ConnectError('reset'));
  }

  /** The connection used last among those that were idle, and not closed, at the last look at all sockets. */
  #takeLooked(): Connection | null {
    for (let at = this.#idle.length - 1; at >= 0; at -= 1) {
      const connection = this.#idle[at] as Connection;
      if (connection.idleSinceTurn === this.#looked.turn) continue;
      this.#idle.splice(at, 1);
      return connection;
    }
    return null;
  }

  #keepUntilMs({ idleSinceMs, keepAliveHintMs, openedAtMs }: Connection): number {
    const { keepAliveMs, longestKeepAliveMs, longestLifeMs } = this.#limits;
    const ownMs = keepAliveHintMs === null ? keepAliveMs : keepAliveHintMs - hintMarginMs;
    return Math.min(idleSinceMs + Math.min(ownMs, longestKeepAliveMs), openedAtMs + longestLifeMs);
  }

  #connect(call: WaitingCall): void {
    const connection = new Connection(this, this.#monotonicMs, this.#turns, this.#limits.readBytes);
    this.#all.add(connection);
    connection.open(this.#open, call);
  }
}
