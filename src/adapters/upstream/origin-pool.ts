import type { Socket } from 'node:net';
import type { PoolStats } from '../upstream-connections.ts';
import type { ConnectionPool, PoolSettings } from '../upstream-pools.ts';
import type { AfterNextPoll, PollWaiter } from './after-next-poll.ts';
import type { ConnectionOwner } from './connection.ts';
import { Connection } from './connection.ts';

/** Opens a socket whose reads go to `read`; `done` is called once. */
export type OpenSocket = (
  read: Connection['read'],
  done: (error: Error | null, socket: Socket | null) => void,
) => void;

/** A call that needs a connection. */
export interface Waiting {
  /** The caller has left: it gets none. */
  readonly isOver: boolean;
  onConnection(connection: Connection): void;
  onConnectError(error: Error): void;
}

/** The vendor's own limit runs from its last byte: we close this much before it. */
const hintMarginMs = 2_000;

/** The sockets to one origin. */
export class OriginPool implements ConnectionOwner, ConnectionPool, PollWaiter {
  readonly #open: OpenSocket;
  readonly #limits: PoolSettings;
  readonly #monotonicMs: () => number;
  readonly #looked: AfterNextPoll;
  /** The one used last is used next, so that the others can grow old. */
  readonly #idle: Connection[] = [];
  readonly #waiting: Waiting[] = [];
  /** All that are open, in no order; each knows its place. */
  readonly #opened: Connection[] = [];
  #sockets = 0;
  #connecting = 0;
  #closed = false;

  constructor(open: OpenSocket, limits: PoolSettings, monotonicMs: () => number, looked: AfterNextPoll) {
    this.#open = open;
    this.#limits = limits;
    this.#monotonicMs = monotonicMs;
    this.#looked = looked;
  }

  get stats(): PoolStats {
    const connected = this.#sockets - this.#connecting;
    return {
      connected,
      running: connected - this.#idle.length,
      pending: this.#connecting + this.#waiting.length,
    };
  }

  get #hasRoom(): boolean {
    const { connections } = this.#limits;
    return connections === null || this.#sockets < connections;
  }

  /** Finds a connection for a call: an idle one that proves to be open, else a new one, else the next that is free. */
  take(call: Waiting): void {
    if (this.#idle.length > 0 || !this.#hasRoom) {
      this.#waiting.push(call);
      if (this.#idle.length > 0) this.#looked.add(this);
    } else {
      this.#connect(call);
    }
  }

  onPolled(): void {
    while (this.#waiting.length > 0) {
      const call = this.#waiting[0] as Waiting;
      if (!call.isOver) {
        const connection = this.#takeLooked();
        if (connection === null) {
          // What became idle in this very turn has to be looked at first.
          if (this.#idle.length > 0) this.#looked.add(this);
          if (this.#idle.length > 0 || !this.#hasRoom) return;
          this.#connect(call);
        } else call.onConnection(connection);
      }
      this.#waiting.shift();
    }
  }

  onFree(connection: Connection): void {
    connection.idleSinceMs = this.#monotonicMs();
    connection.idleSinceTurn = this.#looked.turn;
    if (this.#closed || this.#keepUntilMs(connection) <= connection.idleSinceMs) {
      connection.destroy();
      return;
    }
    this.#idle.push(connection);
    if (this.#waiting.length > 0) this.#looked.add(this);
  }

  onClosed(connection: Connection): void {
    this.#sockets -= 1;
    const last = this.#opened.pop() as Connection;
    if (last !== connection) {
      last.place = connection.place;
      this.#opened[last.place] = last;
    }
    const at = this.#idle.lastIndexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    if (this.#waiting.length > 0) this.#looked.add(this);
  }

  onSilent(sinceMs: number): void {
    for (const connection of this.#idle.slice()) if (connection.idleSinceMs <= sinceMs) connection.destroy();
  }

  /** Closes what has been idle for too long. */
  sweep(nowMs: number): void {
    for (const connection of this.#idle.slice()) {
      if (this.#keepUntilMs(connection) <= nowMs) connection.destroy();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const connection of this.#opened.slice()) if (connection.state === 'idle') connection.destroy();
  }

  async destroy(): Promise<void> {
    this.#closed = true;
    for (const connection of this.#opened.slice()) connection.cut();
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

  #keepUntilMs({ idleSinceMs, keepAliveHintMs }: Connection): number {
    const { keepAliveMs, longestKeepAliveMs } = this.#limits;
    const ownMs = keepAliveHintMs === null ? keepAliveMs : keepAliveHintMs - hintMarginMs;
    return idleSinceMs + Math.min(ownMs, longestKeepAliveMs);
  }

  #connect(call: Waiting): void {
    const connection = new Connection(this, this.#monotonicMs);
    this.#sockets += 1;
    this.#connecting += 1;
    this.#open(connection.read, (error, socket) => {
      this.#connecting -= 1;
      if (socket === null) {
        this.#sockets -= 1;
        call.onConnectError(error as Error);
        if (this.#waiting.length > 0) this.#looked.add(this);
        return;
      }
      connection.adopt(socket);
      connection.place = this.#opened.push(connection) - 1;
      if (!call.isOver) {
        call.onConnection(connection);
        return;
      }
      this.onFree(connection);
    });
  }
}
