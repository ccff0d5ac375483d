import type { Connector } from './connector.ts';
import type { PoolStats } from './upstream-connections.ts';

/** The sockets to one origin, of whichever client. */
export interface ConnectionPool {
  readonly stats: PoolStats;
  /** Since when that socket is idle which has been so the longest (monotonic milliseconds); Infinity: none is. */
  readonly idleSinceMs: number;
  closeOldestIdle(): void;
  /** Calls under way are cut. */
  destroy(): Promise<void>;
}

export interface PoolSettings {
  /** How long an idle socket is kept where the server says nothing of it. */
  readonly keepAliveMs: number;
  /** And at most, whatever the server says. */
  readonly longestKeepAliveMs: number;
  /** A socket that is older is not used again. */
  readonly longestLifeMs: number;
  /** A socket that is being made when its call ends is made all the same, for the next call. */
  readonly connectsAhead: boolean;
  /** What one read takes at most. */
  readonly readBytes: number;
}

export type OpenPool<P> = (origin: string, connect: Connector, settings: PoolSettings) => P;

/** No read is larger, whoever sends. */
export const vendorReadBytes = 64 * 1024;
/**
 * Of a server that anybody may name. What it sends in the fewest bytes is put into form all the same, some ten times as
 * long, and all that one read has become is written before its client is seen not to read.
 */
const userReadBytes = 16 * 1024;

/** Idle sockets are kept a little shorter than common servers keep them, unless the server says otherwise. */
const keepAliveMs = 4_000;
/**
 * Of vendors behind TLS. Load balancers end it there, which keep idle sockets for a minute at least, and a new one
 * costs the next request two round trips. A vendor without TLS is near, and its server may close after five seconds.
 */
const secureKeepAliveMs = 50_000;
/** A vendor may say up to this, and undici keeps it; ours is closed after `longestLifeMs` whatever it says. */
const vendorKeepAliveMs = 600_000;
/** A user's server may not: each idle socket is a file of ours that it decides about. */
const userKeepAliveMs = 10_000;
/**
 * In use without a pause a socket would stay with the address that its name had once. Where the name leads now is asked
 * this often; a handshake in five minutes costs nothing.
 */
const longestLifeMs = 300_000;

export const vendorSettings = (origin: string): PoolSettings => ({
  keepAliveMs: origin.startsWith('https:') ? secureKeepAliveMs : keepAliveMs,
  longestKeepAliveMs: vendorKeepAliveMs,
  longestLifeMs,
  connectsAhead: true,
  readBytes: vendorReadBytes,
});
/** A black hole would hold a socket for as long as connecting may take, though its call has left. */
export const userSettings: PoolSettings = {
  keepAliveMs,
  longestKeepAliveMs: userKeepAliveMs,
  longestLifeMs,
  connectsAhead: false,
  readBytes: userReadBytes,
};
