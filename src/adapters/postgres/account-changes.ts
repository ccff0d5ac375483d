import type pg from 'pg';
import type { NewProviderKey } from '../../core/account/new-provider-key.ts';
import type { ProviderName } from '../../core/provider-name.ts';
import type { Sealer } from '../system/sealer.ts';
import type { PostgresAccounts } from './accounts.ts';
import type { UserFacts, UserPolicy } from './operators.ts';
import { deleteUser, setUserPolicy } from './operators.ts';
import type { AddedKey } from './provider-keys.ts';
import { addProviderKey, deleteProviderKey } from './provider-keys.ts';
import type { DeletedServiceKey } from './service-keys.ts';
import { deleteServiceKey, revokeServiceKey } from './service-keys.ts';
import type { AskedWith } from './user-lock.ts';

/**
 * Changes of what is remembered of users: this replica heeds them at once, the others as soon as they hear of them
 * from the database. All reject with StoreAway.
 */
export class AccountChanges {
  readonly #pool: pg.Pool;
  readonly #accounts: Pick<PostgresAccounts, 'invalidate' | 'revoke'>;

  constructor(pool: pg.Pool, accounts: Pick<PostgresAccounts, 'invalidate' | 'revoke'>) {
    this.#pool = pool;
    this.#accounts = accounts;
  }

  async addProviderKey(
    sealer: Sealer,
    userId: string,
    key: NewProviderKey,
    askedWith: AskedWith,
  ): Promise<AddedKey> {
    const added = await addProviderKey(this.#pool, sealer, userId, key, askedWith);
    if (added.kind === 'added') this.#accounts.invalidate(userId);
    return added;
  }

  /** The key's provider; null: it is none of the user's. */
  async deleteProviderKey(userId: string, keyId: string): Promise<ProviderName | null> {
    const provider = await deleteProviderKey(this.#pool, userId, keyId);
    if (provider !== null) this.#accounts.invalidate(userId);
    return provider;
  }

  async deleteServiceKey(userId: string, keyId: string): Promise<DeletedServiceKey> {
    const deleted = await deleteServiceKey(this.#pool, userId, keyId);
    if (deleted === 'deleted') this.#accounts.revoke(userId, keyId);
    return deleted;
  }

  /** By an operator, who may take a user's last one. False: there is none. */
  async revokeServiceKey(userId: string, keyId: string): Promise<boolean> {
    const isRevoked = await revokeServiceKey(this.#pool, userId, keyId);
    if (isRevoked) this.#accounts.revoke(userId, keyId);
    return isRevoked;
  }

  /** Null: no such user. */
  async setUserPolicy(userId: string, policy: UserPolicy): Promise<UserFacts | null> {
    const user = await setUserPolicy(this.#pool, userId, policy);
    this.#accounts.invalidate(userId);
    return user;
  }

  /** False: no such user. */
  async deleteUser(userId: string): Promise<boolean> {
    const isDeleted = await deleteUser(this.#pool, userId);
    this.#accounts.revoke(userId, 'all');
    return isDeleted;
  }
}
