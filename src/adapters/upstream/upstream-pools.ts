import { randomInt } from 'node:crypto';
import type { UpstreamCall } from '../../chat/ports.ts';
import { FairPlaces } from '../../core/fair-places.ts';
import type { OutboundPolicy } from '../../core/net/outbound-policy.ts';
import { slotOf } from '../../core/shared-room.ts';
import type { ConnectionPool, OpenPool } from './connection-pool.ts';
import { userSettings, vendorSettings } from './connection-pool.ts';
import type { Connector } from './connector.ts';
import { createConnector } from './guarded-connector.ts';
import type { UserSocketLimits } from './user-socket-limits.ts';
import type { Way } from './way.ts';
import { wayOf } from './way.ts';

/** DNS, TCP, a proxy and TLS together (docs/decisions/0004): a black hole costs no more than this. */
const connectTimeoutMs = 5_000;
/** Users' origins with open pools; users can name any, so the least recently used without a call are let go. */
const maxUserOrigins = 1_000;
/** Pools of users' origins that had no call for one to two of these are closed. */
const sweepMs = 15_000;

interface UserPool<P> {
  readonly provider: string;
  readonly pool: P;
  calls: number;
  /** No call since the last sweep. */
  resting: boolean;
}

/** A place for one call; `release` when it is over. */
export interface PoolLease<P> {
  readonly pool: P;
  /** Takes a place for unpacking the answer, which `release` gives back; false when there is none. */
  unpacks(): boolean;
  release(): void;
}

/** Calls to vendors are not counted: one lease serves them all. */
class VendorLease<P> implements PoolLease<P> {
  readonly pool: P;

  constructor(pool: P) {
    this.pool = pool;
  }

  unpacks(): true {
    return true;
  }

  release(): void {
    // Nobody counts.
  }
}

/**
 * Of users' calls, whose answers may be unpacked at once: each takes 100 KiB more of this process, with what it has
 * unpacked, than its socket. Few servers compress what was asked for as it is.
 */
const packedShare = 1 / 8;
const packed = (calls: number): number => Math.max(1, Math.floor(calls * packedShare));

/** By whom they are held. */
interface UserPlaces {
  readonly calls: FairPlaces;
  readonly unpacking: FairPlaces;
}

class UserLease<P> implements PoolLease<P> {
  readonly #entry: UserPool<P>;
  readonly #places: UserPlaces;
  readonly #slot: number;
  #unpacks = false;

  constructor(entry: UserPool<P>, places: UserPlaces, slot: number) {
    this.#entry = entry;
    this.#places = places;
    this.#slot = slot;
    entry.calls += 1;
    entry.resting = false;
  }

  get pool(): P {
    return this.#entry.pool;
  }

  unpacks(): boolean {
    this.#unpacks ||= this.#places.unpacking.take(this.#slot);
    return this.#unpacks;
  }

  release(): void {
    this.#entry.calls -= 1;
    this.#places.calls.give(this.#slot);
    if (this.#unpacks) this.#places.unpacking.give(this.#slot);
  }
}

/**
 * Keep-alive pools per origin, of whichever client: the operator's vendors without bounds, users' servers within
 * theirs. No origin has a limit of its own: whoever filled it would keep the other users of that server out.
 */
export class UpstreamPools<P extends ConnectionPool> {
  readonly #open: OpenPool<P>;
  readonly #policy: OutboundPolicy;
  readonly #limits: UserSocketLimits;
  /** By provider, then origin: names that are at hand need no putting together of a key. */
  readonly #vendors = new Map<string, Map<string, VendorLease<P>>>();
  /** The least recently used first. */
  readonly #users = new Map<string, UserPool<P>>();
  readonly #places: UserPlaces;
  readonly #seed: number;
  readonly #sweeper: NodeJS.Timeout;
  #userSockets = 0;

  /** `seed`: for `slotOf`. */
  constructor(
    open: OpenPool<P>,
    policy: OutboundPolicy,
    limits: UserSocketLimits,
    seed: number = randomInt(2 ** 31),
  ) {
    this.#open = open;
    this.#policy = policy;
    this.#limits = limits;
    this.#places = {
      calls: new FairPlaces(limits.sockets, limits.perUser),
      unpacking: new FairPlaces(packed(limits.sockets), packed(limits.perUser)),
    };
    this.#seed = seed;
    this.#sweeper = setInterval(() => this.#sweep(), sweepMs);
    this.#sweeper.unref();
  }

  /** Null: the user has too many calls under way, be it that all of them together have many. */
  take(call: UpstreamCall): PoolLease<P> | null {
    const { provider } = call;
    const way = wayOf(call, this.#policy.egress);
    // A user's address and a vendor's are never the same pool: different rules opened their sockets.
    if (!call.userAddress)
      return this.#vendors.get(provider)?.get(way.name) ?? this.#openVendor(provider, way);
    const slot = slotOf(call.userId, this.#seed);
    if (!this.#places.calls.take(slot)) return null;
    return new UserLease(this.#userPool(provider, way), this.#places, slot);
  }

  /** All that are open, with their providers. */
  *entries(): Generator<readonly [provider: string, pool: P]> {
    for (const [provider, origins] of this.#vendors)
      for (const { pool } of origins.values()) yield [provider, pool];
    for (const { provider, pool } of this.#users.values()) yield [provider, pool];
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    await Promise.all([...this.entries()].map(([, pool]) => pool.destroy()));
  }

  #openVendor(provider: string, { name, origin, mayPassProxies }: Way): VendorLease<P> {
    const connect = createConnector(this.#policy, { userAddress: false, connectTimeoutMs, mayPassProxies });
    const lease = new VendorLease(this.#open(origin, connect, vendorSettings(origin)));
    const origins = this.#vendors.get(provider) ?? new Map<string, VendorLease<P>>();
    this.#vendors.set(provider, origins.set(name, lease));
    return lease;
  }

  #userPool(provider: string, { name: way, origin, mayPassProxies }: Way): UserPool<P> {
    const name = `${provider} ${way}`;
    const known = this.#users.get(name);
    if (known !== undefined) {
      this.#users.delete(name);
      this.#users.set(name, known);
      return known;
    }
    if (this.#users.size >= maxUserOrigins) this.#makeRoom();
    const connect = this.#counted(
      createConnector(this.#policy, { userAddress: true, connectTimeoutMs, mayPassProxies }),
    );
    const entry = { provider, pool: this.#open(origin, connect, userSettings), calls: 0, resting: false };
    this.#users.set(name, entry);
    return entry;
  }

  /**
   * Counts sockets from their first look-up to their end. Each that is not idle belongs to a call, and those have
   * places: beyond the limit only an idle one can be too many, whosever it was.
   */
  #counted(connector: Connector): Connector {
    return (target, callback) => {
      if (this.#userSockets >= this.#limits.sockets) this.#closeOldestIdle();
      this.#userSockets += 1;
      const closed = (): void => {
        this.#userSockets -= 1;
      };
      return connector(target, (...outcome) => {
        const [error, socket] = outcome;
        if (error === null) socket.once('close', closed);
        else closed();
        callback(...outcome);
      });
    };
  }

  #closeOldestIdle(): void {
    let oldest: P | null = null;
    for (const { pool } of this.#users.values()) {
      if (pool.idleSinceMs < (oldest?.idleSinceMs ?? Number.POSITIVE_INFINITY)) oldest = pool;
    }
    oldest?.closeOldestIdle();
  }

  /** A pool with calls stays, for its metrics and `close`: the places bound how many. */
  #makeRoom(): void {
    for (const [name, { calls }] of this.#users) {
      if (calls > 0) continue;
      this.#drop(name);
      return;
    }
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

const nothing = (): void => undefined;
