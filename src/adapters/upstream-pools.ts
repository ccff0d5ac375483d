import type { UpstreamCall } from '../chat/ports.ts';
import type { OutboundPolicy } from '../core/outbound-policy.ts';
import type { Connector } from './guarded-connector.ts';
import { ConnectError, createConnector } from './guarded-connector.ts';
import type { PoolStats } from './upstream-connections.ts';

/** DNS, TCP and TLS together (docs/decisions): a black hole costs no more than this. */
const connectTimeoutMs = 5_000;
/** Idle sockets are kept a little shorter than common servers keep them, unless the server says otherwise. */
const keepAliveMs = 4_000;
/** A vendor may say up to this. */
const vendorKeepAliveMs = 600_000;
/** A user's server may not: each idle socket is a file of ours that it decides about. */
const userKeepAliveMs = 10_000;
/** Users' origins with open pools; users can name any, so the least recently used without a call are let go. */
const maxUserOrigins = 1_000;
/** Pools of users' origins that had no call for one to two of these are closed. */
const sweepMs = 15_000;

/** What servers that users name may take of this process. */
export interface UserLimits {
  /** Sockets to all of them, idle ones included. */
  readonly sockets: number;
  /** Sockets to one of them; as many calls more may wait for one. */
  readonly perOrigin: number;
  /** Calls of one user under way to any of them. */
  readonly perUser: number;
}

/** A socket with its buffers takes some 50 KiB, so that all of them are 100 MiB where files are no bound. */
const mostUserSockets = 2048;

/** A quarter of all files for users' servers, and a quarter of that for one server or one user. */
export function userLimitsWithin(openFiles: number): UserLimits {
  const sockets = Math.min(mostUserSockets, Math.floor(openFiles / 4));
  const share = Math.max(1, Math.floor(sockets / 4));
  return { sockets, perOrigin: share, perUser: share };
}

/** The sockets to one origin, of whichever client. */
export interface ConnectionPool {
  readonly stats: PoolStats;
  /** Calls under way finish first. */
  close(): Promise<void>;
  /** Calls under way are cut. */
  destroy(): Promise<void>;
}

export interface PoolSettings {
  /** How long an idle socket is kept where the server says nothing of it. */
  readonly keepAliveMs: number;
  /** And at most, whatever the server says. */
  readonly longestKeepAliveMs: number;
  /** Sockets at once; further calls wait. Null: no limit. */
  readonly connections: number | null;
}

export type OpenPool<P> = (origin: string, connect: Connector, settings: PoolSettings) => P;

interface UserPool<P> {
  readonly pool: P;
  calls: number;
  /** No call since the last sweep. */
  resting: boolean;
}

/** A place for one call; `leave` when it is over. */
export interface PoolSeat<P> {
  readonly pool: P;
  leave(): void;
}

const vendorSettings: PoolSettings = {
  keepAliveMs,
  longestKeepAliveMs: vendorKeepAliveMs,
  connections: null,
};
const userSettings = { keepAliveMs, longestKeepAliveMs: userKeepAliveMs };

const nothing = (): void => undefined;

/**
 * Keep-alive pools per origin, of whichever client: the operator's vendors without bounds, users' servers within
 * theirs.
 */
export class UpstreamPools<P extends ConnectionPool> {
  readonly #open: OpenPool<P>;
  readonly #policy: OutboundPolicy;
  readonly #limits: UserLimits;
  readonly #vendors = new Map<string, P>();
  /** The least recently used first. */
  readonly #users = new Map<string, UserPool<P>>();
  readonly #callsOf = new Map<string, number>();
  readonly #sweeper: NodeJS.Timeout;
  #userSockets = 0;

  constructor(open: OpenPool<P>, policy: OutboundPolicy, limits: UserLimits) {
    this.#open = open;
    this.#policy = policy;
    this.#limits = limits;
    this.#sweeper = setInterval(() => this.#sweep(), sweepMs);
    this.#sweeper.unref();
  }

  /** Null: the user, or the server, has too many calls under way. */
  take(call: UpstreamCall): PoolSeat<P> | null {
    // A user's address and a vendor's are never the same pool: different rules opened their sockets.
    const name = `${call.provider} ${call.origin}`;
    if (!call.userAddress) return { pool: this.#vendorPool(name, call.origin), leave: nothing };
    const userCalls = this.#callsOf.get(call.userId) ?? 0;
    const entry = this.#userPool(name, call.origin);
    if (userCalls >= this.#limits.perUser || entry.calls >= 2 * this.#limits.perOrigin) return null;
    this.#callsOf.set(call.userId, userCalls + 1);
    entry.calls += 1;
    entry.resting = false;
    return { pool: entry.pool, leave: () => this.#leave(entry, call.userId) };
  }

  /** By name, which begins with the provider. */
  *entries(): Generator<readonly [name: string, pool: P]> {
    yield* this.#vendors;
    for (const [name, { pool }] of this.#users.entries()) yield [name, pool];
  }

  /** Sockets to users' servers, idle and being connected included. */
  get userSockets(): number {
    return this.#userSockets;
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    await Promise.all([...this.entries()].map(([, pool]) => pool.destroy()));
  }

  #leave(entry: UserPool<P>, userId: string): void {
    entry.calls -= 1;
    const others = (this.#callsOf.get(userId) ?? 1) - 1;
    if (others > 0) this.#callsOf.set(userId, others);
    else this.#callsOf.delete(userId);
  }

  #vendorPool(name: string, origin: string): P {
    const known = this.#vendors.get(name);
    if (known !== undefined) return known;
    const connect = createConnector(this.#policy, { userAddress: false, connectTimeoutMs });
    const pool = this.#open(origin, connect, vendorSettings);
    this.#vendors.set(name, pool);
    return pool;
  }

  #userPool(name: string, origin: string): UserPool<P> {
    const known = this.#users.get(name);
    if (known !== undefined) {
      this.#users.delete(name);
      this.#users.set(name, known);
      return known;
    }
    if (this.#users.size >= maxUserOrigins) this.#makeRoom();
    const connect = this.#counted(createConnector(this.#policy, { userAddress: true, connectTimeoutMs }));
    const pool = this.#open(origin, connect, { ...userSettings, connections: this.#limits.perOrigin });
    const entry = { pool, calls: 0, resting: false };
    this.#users.set(name, entry);
    return entry;
  }

  /** Counts sockets from their first look-up to their end, and opens none beyond the limit. */
  #counted(connector: Connector): Connector {
    return (target, callback) => {
      // Idle sockets go before anybody is refused.
      if (this.#userSockets >= (this.#limits.sockets * 3) / 4) this.#closeIdle();
      if (this.#userSockets >= this.#limits.sockets) {
        callback(new ConnectError('no-room', 'Too many connections to servers of users are open.'), null);
        return;
      }
      this.#userSockets += 1;
      const closed = (): void => {
        this.#userSockets -= 1;
      };
      connector(target, (...outcome) => {
        const [error, socket] = outcome;
        if (error === null) socket.once('close', closed);
        else closed();
        callback(...outcome);
      });
    };
  }

  /** A pool with calls stays, for its limit, its metrics and `close`: the limit of sockets bounds how many. */
  #makeRoom(): void {
    for (const [name, { calls }] of this.#users) {
      if (calls > 0) continue;
      this.#drop(name);
      return;
    }
  }

  #closeIdle(): void {
    for (const [name, { calls }] of [...this.#users.entries()]) if (calls === 0) this.#drop(name);
  }

  #sweep(): void {
    for (const [name, entry] of [...this.#users.entries()]) {
      if (entry.calls > 0) continue;
      if (entry.resting) this.#drop(name);
      entry.resting = true;
    }
  }

  #drop(name: string): void {
    const entry = this.#users.get(name);
    this.#users.delete(name);
    void entry?.pool.destroy().catch(nothing);
  }
}
