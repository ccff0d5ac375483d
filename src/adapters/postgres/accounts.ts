import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import type { Accounts, Clock } from '../../chat/ports.ts';
import { StoreAway } from '../../core/store-away.ts';
import type { FairTurns } from '../../fair-turns.ts';
import { AccountCache } from './account-cache.ts';
import type { LoadedAccount } from './account-query.ts';
import { readAccount } from './account-query.ts';
import { AwayWatch } from './away-watch.ts';
import { listenForKeyChanges } from './key-changes.ts';
import { lookUpTurns } from './look-up-turns.ts';
import { withDatabase } from './pool.ts';
import { RevokedKeys } from './revoked-keys.ts';
import { ServiceKeyUses } from './service-key-uses.ts';

/** Trusted this long while changes are received: bounds what a change made by hand in SQL can outlive. */
const listeningTtlMs = 60_000;
/** Trusted this long while changes may go unheard: a deletion may take 1 s to arrive, the next look-up included. */
const deafTtlMs = 900;
/** How old facts may get while Postgres answers nobody. */
const awayTtlMs = 10 * 60_000;
/** Loads that an invalidation overtook are repeated; a user who changes keys faster is served uncached. */
const maxLoads = 3;
/** Hashes of keys: a few MB. */
const mostKnownGood = 20_000;

export interface PostgresAccounts extends Accounts {
  /** Forgets a user's facts here at once; other replicas learn of it from the database. */
  invalidate(userId: string): void;
  /** Forgets the service key of this id, or all of the user's: they are not asked for again. */
  revoke(userId: string, serviceKeyId: string | 'all'): void;
  /** True while changes made by other replicas are received: false shortens how long facts are trusted. */
  listening(): boolean;
  size(): number;
  close(): Promise<void>;
}

export interface AccountsOptions {
  readonly pool: pg.Pool;
  /** A direct connection, for LISTEN; its hosts are shared with pools. */
  readonly directUrl: string;
  readonly directHosts?: Parameters<typeof listenForKeyChanges>[0]['hosts'];
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Called when changes made by other replicas begin or cease to arrive, with the reason. */
  readonly onListening?: (listening: boolean, reason: string | null) => void;
  /** Given: `readAccount`, watched. */
  readonly read?: typeof readAccount;
}

interface Load {
  readonly result: Promise<LoadedAccount | null>;
  /** Users whose keys changed while the load ran. */
  readonly changedUsers: Set<string>;
}

class CachedAccounts implements PostgresAccounts {
  readonly #pool: pg.Pool;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #readAccount: typeof readAccount;
  readonly #changes: ReturnType<typeof listenForKeyChanges>;
  readonly #revoked = new RevokedKeys();
  readonly #uses: ServiceKeyUses;
  /** By the whole hash, never a prefix. Unknown keys are not kept: that would let strangers fill the cache. */
  readonly #cache: AccountCache;
  readonly #hashesByUser = new Map<string, Set<string>>();
  /** Concurrent loads of one hash share a query. */
  readonly #loads = new Map<string, Load>();
  readonly #turns: FairTurns;
  /** Keys that were good here, whatever the cache has let go of since: their users wait behind no stranger. */
  readonly #knownGood = new LRUCache<string, true>({ max: mostKnownGood });
  readonly #away = new AwayWatch();

  constructor({ pool, directUrl, directHosts, clock, onListening, read = readAccount }: AccountsOptions) {
    this.#pool = pool;
    this.#readAccount = read;
    this.#clock = clock;
    this.#uses = new ServiceKeyUses(pool);
    this.#turns = lookUpTurns(pool.options.max);
    this.#cache = new AccountCache(({ userId }, hash) => this.#forgetHash(userId, hash));
    this.#changes = listenForKeyChanges({
      ...{ url: directUrl, hosts: directHosts, clock },
      onChange: (userId) => this.invalidate(userId),
      onRevoked: ({ userId, serviceKeyId }) => this.revoke(userId, serviceKeyId),
      notify: (channel, payload) => pool.query('SELECT pg_notify($1, $2)', [channel, payload]),
      ...(onListening === undefined ? {} : { onState: onListening }),
    });
  }

  find(keyHash: string, asker?: () => string): LoadedAccount | null | Promise<LoadedAccount | null> {
    const cached = this.#cache.get(keyHash);
    if (cached !== undefined && this.#isTrusted(cached)) return this.#unlessExpired(cached);
    if (cached === undefined && this.#revoked.has(keyHash)) return null;
    return this.#load(keyHash, cached, this.#knownGood.has(keyHash) ? undefined : asker);
  }

  remembers(keyHash: string): boolean {
    return this.#cache.has(keyHash);
  }

  isRevoked(keyHash: string): boolean {
    return this.#revoked.has(keyHash);
  }

  async refresh(keyHash: string): Promise<LoadedAccount | null> {
    // A load that is already running may have read before the change this caller waits for.
    await this.#loads.get(keyHash)?.result.catch(() => null);
    return this.#load(keyHash, this.#cache.get(keyHash));
  }

  invalidate(userId: string): void {
    for (const load of this.#loads.values()) load.changedUsers.add(userId);
    const hashes = this.#hashesByUser.get(userId);
    if (hashes === undefined) return;
    for (const hash of [...hashes]) this.#cache.delete(hash);
  }

  revoke(userId: string, serviceKeyId: string | 'all'): void {
    for (const load of this.#loads.values()) load.changedUsers.add(userId);
    for (const hash of [...(this.#hashesByUser.get(userId) ?? [])]) {
      if (serviceKeyId !== 'all' && this.#cache.peek(hash)?.serviceKeyId !== serviceKeyId) continue;
      this.#revoked.add(hash);
      this.#cache.delete(hash);
    }
  }

  listening(): boolean {
    return this.#changes.listeningSinceMs() !== null;
  }

  size(): number {
    return this.#cache.size;
  }

  async close(): Promise<void> {
    this.#away.close();
    await this.#changes.close();
    await this.#uses.close();
  }

  #isTrusted(account: LoadedAccount): boolean {
    const ageMs = this.#clock.monotonicMs() - account.readAtMs;
    if (ageMs <= deafTtlMs) return true;
    if (this.#away.isAway) return ageMs <= awayTtlMs;
    const sinceMs = this.#changes.listeningSinceMs();
    return sinceMs !== null && account.readAtMs >= sinceMs && ageMs <= listeningTtlMs;
  }

  #unlessExpired(account: LoadedAccount): LoadedAccount | null {
    const { expiresAtMs } = account;
    return expiresAtMs === null || this.#clock.monotonicMs() < expiresAtMs ? account : null;
  }

  /** Without an `asker` it needs no turn. */
  #load(
    keyHash: string,
    stale: LoadedAccount | undefined,
    asker?: () => string,
  ): Promise<LoadedAccount | null> {
    const running = this.#loads.get(keyHash);
    if (running !== undefined) return running.result;
    const changedUsers = new Set<string>();
    const read = () => this.#read(keyHash, stale, changedUsers);
    const reading = stale === undefined && asker !== undefined ? this.#turns.run(asker(), read) : read();
    const result = reading.finally(() => this.#loads.delete(keyHash));
    this.#loads.set(keyHash, { result, changedUsers });
    return result;
  }

  async #read(
    keyHash: string,
    stale: LoadedAccount | undefined,
    changed: Set<string>,
  ): Promise<LoadedAccount | null> {
    for (let loads = 1; ; loads += 1) {
      changed.clear();
      const readAtMs = this.#clock.monotonicMs();
      let account: LoadedAccount | null;
      try {
        account = await this.#ask(keyHash, readAtMs);
        this.#away.answered();
      } catch (error) {
        const usable = stale !== undefined && readAtMs - stale.readAtMs <= awayTtlMs;
        if (!(error instanceof StoreAway)) throw error;
        // A crowded pool helps this one look-up to what is known; nobody else's trust grows by it.
        if (!error.crowded) this.#away.began(() => this.#ask(keyHash, this.#clock.monotonicMs()));
        // An account invalidated meanwhile is gone from the cache: what it held may not be served.
        if (usable && this.#cache.peek(keyHash) === stale) return this.#unlessExpired(stale);
        throw error;
      }
      if (account === null) {
        this.#cache.delete(keyHash);
        return null;
      }
      if (!changed.has(account.userId)) {
        this.#keep(keyHash, account);
        return account;
      }
      if (loads === maxLoads) return account;
    }
  }

  #ask(keyHash: string, readAtMs: number): Promise<LoadedAccount | null> {
    return withDatabase(() => this.#readAccount(this.#pool, keyHash, readAtMs));
  }

  #keep(keyHash: string, account: LoadedAccount): void {
    this.#knownGood.set(keyHash, true);
    if (!account.usedThisHour) this.#uses.note(keyHash);
    if (!this.#cache.set(keyHash, account)) return;
    const hashes = this.#hashesByUser.get(account.userId);
    if (hashes === undefined) this.#hashesByUser.set(account.userId, new Set([keyHash]));
    else hashes.add(keyHash);
  }

  #forgetHash(userId: string, keyHash: string): void {
    const hashes = this.#hashesByUser.get(userId);
    hashes?.delete(keyHash);
    if (hashes?.size === 0) this.#hashesByUser.delete(userId);
  }
}

/** The `Accounts` port over Postgres: see the constants above for how long facts are trusted. */
export function createAccounts(options: AccountsOptions): PostgresAccounts {
  return new CachedAccounts(options);
}
