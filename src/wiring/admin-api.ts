import { AccountChanges } from '../adapters/postgres/account-changes.ts';
import { findUser, listUsers } from '../adapters/postgres/operators.ts';
import { listProviderKeys } from '../adapters/postgres/provider-keys.ts';
import { readSpend } from '../adapters/postgres/read-spend.ts';
import { addServiceKey, listServiceKeys } from '../adapters/postgres/service-keys.ts';
import { registerUser } from '../adapters/postgres/users.ts';
import type { LaterTurns } from '../chat/later-turn.ts';
import type { AdminApi } from '../http/admin/admin-server.ts';
import type { OperatorStore } from '../http/admin/operators.ts';
import type { Foundation } from './foundation.ts';

/** What the admin API needs; null without an admin token. */
export function adminApi(foundation: Foundation, later: LaterTurns): AdminApi | null {
  const { settings, life, clock, telemetry } = foundation;
  if (settings.adminToken === null) return null;
  return {
    token: settings.adminToken,
    clock,
    life,
    httpTelemetry: telemetry,
    later,
    store: operatorStore(foundation),
  };
}

/** What operators do with the database; null where there is none. */
function operatorStore({ stores, metrics }: Foundation): OperatorStore | null {
  const { database, accounts } = stores;
  if (database === null) return null;
  const { operatorsPool: pool } = database;
  const changes = new AccountChanges(pool, accounts);
  const timeQuery = metrics.stores.timeQuery.bind(metrics.stores);
  return {
    registerUser: timeQuery('register_user', (user) => registerUser(pool, user)),
    addServiceKey: timeQuery('add_service_key', (userId, key, askedWith) =>
      addServiceKey(pool, userId, key, askedWith),
    ),
    listServiceKeys: timeQuery('list_service_keys', (userId) => listServiceKeys(pool, userId)),
    revokeServiceKey: timeQuery('delete_service_key', (userId, keyId) =>
      changes.revokeServiceKey(userId, keyId),
    ),
    listProviderKeys: timeQuery('list_keys', (userId) => listProviderKeys(pool, userId)),
    listUsers: timeQuery('list_users', (afterId, limit) => listUsers(pool, afterId, limit)),
    findUser: timeQuery('find_user', (idOrEmail) => findUser(pool, idOrEmail)),
    setUserPolicy: timeQuery('set_user_policy', (userId, policy) => changes.setUserPolicy(userId, policy)),
    deleteUser: timeQuery('delete_user', (userId) => changes.deleteUser(userId)),
    readSpend: timeQuery('read_spend', (period) => readSpend(database.spendPool, period)),
  };
}
