import { addProviderKey, deleteProviderKey, listProviderKeys } from './adapters/postgres/provider-keys.ts';
import { readLogs } from './adapters/postgres/request-logs-query.ts';
import { readStats } from './adapters/postgres/stats-query.ts';
import { registerUser } from './adapters/postgres/users.ts';
import type { Sealer } from './adapters/sealer.ts';
import { registrationGuard } from './http/registration-policy.ts';
import type { StoreRoutesIo } from './http/routes.ts';
import type { Settings } from './settings.ts';
import type { Stores } from './stores.ts';

/** What the routes that need Postgres do; null where there is none. */
export function storeRoutesIo(
  settings: Settings,
  stores: Stores,
  sealer: Sealer,
  monotonicMs: () => number,
): StoreRoutesIo | null {
  if (stores.database === null) return null;
  const { pool, queryPool } = stores.database;
  const { accounts } = stores;
  return {
    mayRegister: registrationGuard(
      {
        mode: settings.registration,
        token: settings.registrationToken,
        perMinute: settings.registrationsPerMinute,
        perMinutePerIp: settings.registrationsPerMinutePerIp,
      },
      monotonicMs,
    ),
    registerUser: (user) => registerUser(pool, user),
    addProviderKey: async (userId, key) => {
      const row = await addProviderKey(pool, sealer, userId, key);
      accounts.invalidate(userId);
      return row;
    },
    listProviderKeys: (userId) => listProviderKeys(pool, userId),
    deleteProviderKey: async (userId, keyId) => {
      await deleteProviderKey(pool, userId, keyId);
      accounts.invalidate(userId);
    },
    readLogs: (userId, query) => readLogs(queryPool, userId, query),
    readStats: (userId, query) => readStats(queryPool, userId, query),
  };
}
