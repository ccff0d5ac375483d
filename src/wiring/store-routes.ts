import type pg from 'pg';
import { AccountChanges } from '../adapters/postgres/account-changes.ts';
import { poolConnectMs } from '../adapters/postgres/pool.ts';
import { listProviderKeys } from '../adapters/postgres/provider-keys.ts';
import { readLogRow } from '../adapters/postgres/read-log-row.ts';
import type { LogRowsQuery } from '../adapters/postgres/read-log-rows.ts';
import { readLogRows } from '../adapters/postgres/read-log-rows.ts';
import { readProviderKeyUses } from '../adapters/postgres/read-provider-key-uses.ts';
import type { SumsQuery } from '../adapters/postgres/read-sums.ts';
import { readSums } from '../adapters/postgres/read-sums.ts';
import { addServiceKey, listServiceKeys } from '../adapters/postgres/service-keys.ts';
import { registerUser } from '../adapters/postgres/users.ts';
import type { Sealer } from '../adapters/system/sealer.ts';
import { FairTurns } from '../fair-turns.ts';
import { registrationGuard } from '../http/access/registration-policy.ts';
import { itemsOfOneTurn } from '../http/answers/long-answer.ts';
import { askerOf } from '../http/audit.ts';
import type { HttpTelemetry } from '../http/http-telemetry.ts';
import { keyCheckLimit } from '../http/limits/key-check-limit.ts';
import type { RoutesStore } from '../http/routes.ts';
import { tooManyQueries, UserTurns } from '../limits/user-turns.ts';
import type { Settings } from '../settings.ts';
import type { StoreMetrics } from '../telemetry/store-metrics.ts';
import type { Stores } from './stores.ts';

/** What is reported: the timing of queries, and a registration token that is wrong. */
export interface StoreRoutesWatch {
  readonly metrics: StoreMetrics;
  readonly httpTelemetry: Pick<HttpTelemetry, 'authFailed'>;
}

/**
 * Long answers in the making, of whomever: a page of a thousand wide log rows takes 10 MB until its last byte is
 * written, statistics of ten thousand groups 20 MB.
 */
const mostLongAnswers = 3;

/** As long as the pool lets a query wait for a connection: Postgres is then not what the caller waits for. */
const turnsOf = ({ options }: pg.Pool): UserTurns =>
  new UserTurns({ connections: options.max, maxWaitMs: poolConnectMs });

/** What the routes ask of Postgres; null where there is none. */
export function routesStore(
  settings: Settings,
  stores: Stores,
  sealer: Sealer,
  monotonicMs: () => number,
  watch: StoreRoutesWatch,
): RoutesStore | null {
  if (stores.database === null) return null;
  const { pool, queryPool } = stores.database;
  const changes = new AccountChanges(pool, stores.accounts);
  const { metrics, httpTelemetry } = watch;
  const timeQuery = metrics.timeQuery.bind(metrics);
  // Apart, as their pools are: who reads statistics does not wait for who changes keys.
  const keyTurns = turnsOf(pool);
  const readTurns = turnsOf(queryPool);
  const longAnswers = new FairTurns({
    mostUnderWay: mostLongAnswers,
    maxWaitMs: poolConnectMs,
    late: tooManyQueries,
  });
  const readStats = timeQuery('read_stats', (userId: string, query: SumsQuery) =>
    readSums(queryPool, userId, query),
  );
  const readPage = timeQuery('read_logs', (userId: string, query: LogRowsQuery) =>
    readLogRows(queryPool, userId, query),
  );
  return {
    mayRegister: registrationGuard(
      {
        mode: settings.registration,
        token: settings.registrationToken,
        perMinute: settings.registrationsPerMinute,
        perMinutePerIp: settings.registrationsPerMinutePerIp,
      },
      monotonicMs,
      (request) => httpTelemetry.authFailed('registration_token', askerOf(request)),
      stores.registrations,
    ),
    registerUser: timeQuery('register_user', (user) => registerUser(pool, user)),
    addProviderKey: keyTurns.share(
      timeQuery('add_key', (userId, key, askedWith) =>
        changes.addProviderKey(sealer, userId, key, askedWith),
      ),
    ),
    listProviderKeys: keyTurns.share(timeQuery('list_keys', (userId) => listProviderKeys(pool, userId))),
    deleteProviderKey: keyTurns.share(
      timeQuery('delete_key', (userId, keyId) => changes.deleteProviderKey(userId, keyId)),
    ),
    addServiceKey: keyTurns.share(
      timeQuery('add_service_key', (userId, key, askedWith) => addServiceKey(pool, userId, key, askedWith)),
    ),
    listServiceKeys: keyTurns.share(
      timeQuery('list_service_keys', (userId) => listServiceKeys(pool, userId)),
    ),
    deleteServiceKey: keyTurns.share(
      timeQuery('delete_service_key', (userId, keyId) => changes.deleteServiceKey(userId, keyId)),
    ),
    mayCheckKey: keyCheckLimit(monotonicMs, stores.keyChecks),
    readProviderKeyUses: readTurns.share(
      timeQuery('read_key_uses', (userId) => readProviderKeyUses(queryPool, userId)),
    ),
    readLogRows: readTurns.share((userId, query, take) => {
      const make = async () => take(await readPage(userId, query));
      return query.limit > itemsOfOneTurn ? longAnswers.run(userId, make) : make();
    }),
    readLogRow: readTurns.share(timeQuery('read_log', (userId, id) => readLogRow(queryPool, userId, id))),
    readSums: readTurns.share((userId, query, take) => {
      const make = async () => take(await readStats(userId, query));
      // Days are what there may be more of than tables have names.
      return query.groupBy.includes('day') ? longAnswers.run(userId, make) : make();
    }),
  };
}
