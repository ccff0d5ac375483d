import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { Logger } from 'pino';
import { MemoryResponseCache } from '../adapters/cache/memory-cache.ts';
import { SealedResponseCache } from '../adapters/cache/sealed-cache.ts';
import { readAccount } from '../adapters/postgres/account-query.ts';
import type { PostgresAccounts } from '../adapters/postgres/accounts.ts';
import { createAccounts } from '../adapters/postgres/accounts.ts';
import { HostChoice } from '../adapters/postgres/host-choice.ts';
import { newRowsInto } from '../adapters/postgres/log-insert.ts';
import { keepOnlineIndexes } from '../adapters/postgres/online-indexes.ts';
import { keepPartitions } from '../adapters/postgres/partition-keeper.ts';
import { createPool } from '../adapters/postgres/pool.ts';
import { readSpent } from '../adapters/postgres/read-spent.ts';
import { createRequestLog } from '../adapters/postgres/request-log.ts';
import type { RequestLogStats } from '../adapters/postgres/request-log-contract.ts';
import { keepRollups } from '../adapters/postgres/rollup-keeper.ts';
import type { SchemaGate } from '../adapters/postgres/schema-gate.ts';
import { openSchemaGate } from '../adapters/postgres/schema-gate.ts';
import type { SealedKeyCounts } from '../adapters/postgres/sealed-key-counts.ts';
import { countSealedKeys, watchSealedKeys } from '../adapters/postgres/sealed-key-counts.ts';
import type { CacheStats } from '../adapters/redis/response-cache.ts';
import { RedisResponseCache } from '../adapters/redis/response-cache.ts';
import { RedisLimits } from '../adapters/redis/shared-limits.ts';
import type { Sealer } from '../adapters/system/sealer.ts';
import type { NamedEndpoint } from '../adapters/upstream/own-endpoints.ts';
import type { Accounts, Clock, RequestLog, ResponseCache } from '../chat/ports.ts';
import { parseDatabaseUrl } from '../core/net/database-url.ts';
import { parseRedisUrl } from '../core/net/redis-url.ts';
import type { ReadSpent, SharedCount, SharedLimits } from '../limits/ports.ts';
import type { Settings } from '../settings.ts';
import type { StdoutLines } from '../telemetry/stdout-lines.ts';
import type { StoreMetrics } from '../telemetry/store-metrics.ts';
import { countIn, openRedis } from './redis-connections.ts';
import { refusedBatches } from './refused-batches.ts';
import {
  certificateLines,
  listeningLines,
  refusalLine,
  requestLogLines,
  unopenedLine,
  waitingLines,
} from './store-lines.ts';

/** Connections to Postgres beside those for accounts and keys; the chart and the settings' texts reckon with them. */
export const poolSizes = {
  /** Pages of logs and statistics have connections of their own, so that they never delay a chat request. */
  query: 4,
  /** Two writers and the spool's replay. */
  log: 3,
  /** Operators are few. Connections are made when they are needed: without an admin API there are none. */
  operators: 2,
  spend: 1,
} as const;
/** A cached answer with its envelope; the tables' own limit is checked where answers are made. */
export const maxCacheValueBytes = 20 * 1024 * 1024;
/** Sums over a year of all users' requests may take their time. Who asks for another meanwhile waits for it. */
const spendPatience = { patienceMs: 30_000, connectMs: 30_000 };
const closeTimeoutMs = 5_000;

/** Everything that remembers something beyond one request. */
export interface Stores {
  /** Null in a sidecar without Postgres: routes that need it answer `not_in_profile`. */
  readonly database: {
    readonly pool: pg.Pool;
    readonly queryPool: pg.Pool;
    readonly logPool: pg.Pool;
    /** What operators ask, and their sums over all users: apart, so that no sum holds up a decision. */
    readonly operatorsPool: pg.Pool;
    readonly spendPool: pg.Pool;
    /** Whether key changes made by other replicas are received. */
    readonly listening: () => boolean;
    readonly sealedKeys: () => SealedKeyCounts | null;
    /** When this process last made and dropped weeks of the log; null: not yet. */
    readonly partitionsKeptAtMs: () => number | null;
  } | null;
  readonly accounts: Accounts & Pick<PostgresAccounts, 'invalidate' | 'revoke'>;
  readonly requestLog: RequestLog & { stats(): RequestLogStats };
  readonly storeState: SchemaGate['state'];
  readonly answers: ResponseCache;
  /** Registrations of all replicas; null where each counts its own. */
  readonly registrations: SharedCount | null;
  /** The same of checks of keys. */
  readonly keyChecks: SharedCount | null;
  /** What all replicas count of users with limits; null where each counts its own. */
  readonly sharedLimits: SharedLimits | null;
  /** What users spent; null without a database, where there are no budgets. */
  readonly readSpent: ReadSpent | null;
  /** Null where answers are cached in memory. */
  readonly cacheStats: (() => CacheStats) | null;
  /** Writes what is left, then lets go of every connection. */
  close(): Promise<void>;
}

export interface StoresIo {
  readonly settings: Settings;
  readonly databaseUrl: string;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly log: Logger;
  readonly lines: Pick<StdoutLines, 'print' | 'untilLeft'>;
  readonly metrics: StoreMetrics;
  /** Told of each row that lies in a store how many milliseconds its answer waited for it. */
  readonly onKept: (waitedMs: number) => void;
  /** Each server of Redis that is connected to, which sentinels and clusters choose. */
  readonly onStore: (endpoint: NamedEndpoint) => void;
}

/**
 * Opens the stores without waiting for any of them: Postgres and Redis may come later. Rejects when the spool's folder
 * cannot be used; nothing stays open then.
 */
export async function openStores(io: StoresIo): Promise<Stores> {
  const opened: Opened[] = [];
  try {
    return await openEach(io, opened);
  } catch (error) {
    await closeAll(opened);
    throw error;
  }
}

/** Lets go of one thing that was opened. */
type Opened = () => unknown;

/** What was opened last is closed first. */
async function closeAll(opened: Opened[]): Promise<void> {
  for (const close of opened.splice(0).reverse()) await close();
}

type Pools = Pick<
  NonNullable<Stores['database']>,
  'pool' | 'queryPool' | 'logPool' | 'operatorsPool' | 'spendPool'
>;

function createPools(
  databaseUrl: string,
  directUrl: string,
  directHosts: HostChoice,
  poolSize: number,
  log: Logger,
): Pools {
  // A second address is only given where the first one is a pooler's.
  const pooled = directUrl !== databaseUrl;
  const through = { pooled, hosts: pooled ? new HostChoice(databaseUrl) : directHosts };
  return {
    pool: createPool(databaseUrl, poolSize, {
      ...through,
      onCertificates: certificateLines(log, 'DATABASE_URL'),
    }),
    queryPool: createPool(databaseUrl, poolSizes.query, through),
    logPool: createPool(directUrl, poolSizes.log, {
      hosts: directHosts,
      onCertificates: pooled ? certificateLines(log, 'DATABASE_DIRECT_URL') : undefined,
    }),
    operatorsPool: createPool(databaseUrl, poolSizes.operators, through),
    spendPool: createPool(databaseUrl, poolSizes.spend, { ...through, ...spendPatience }),
  };
}

async function openEach(io: StoresIo, opened: Opened[]): Promise<Stores> {
  const { settings, databaseUrl, sealer, clock, log, lines, metrics, onKept, onStore } = io;
  const stopping = new AbortController();
  const directUrl = settings.databaseDirectUrl ?? databaseUrl;
  const directHosts = new HostChoice(directUrl);
  const pools = createPools(databaseUrl, directUrl, directHosts, settings.databasePool, log);
  const { pool, queryPool, logPool } = pools;
  opened.push(() => Promise.all(Object.values(pools).map((one) => one.end())));
  const { migrateAtBoot, spoolDir, spoolBytes, spoolFull, logRetentionDays } = settings;
  const onWaiting = waitingLines(log, clock);
  const gate = openSchemaGate({ pool, directUrl, migrateAtBoot, log, onWaiting, signal: stopping.signal });
  opened.push(() => stopping.abort());
  const requestLog = await createRequestLog({
    pool: logPool,
    spool: { directory: spoolDir, maxBytes: spoolBytes },
    whenFull: spoolFull,
    clock,
    printer: lines,
    onKept,
    ...requestLogLines(log),
    insert: metrics.timeFlush(newRowsInto(logPool, refusedBatches(log, clock, metrics))),
  });
  opened.push(() => requestLog.drain(closeTimeoutMs));
  const read = metrics.timeQuery('find_account', readAccount);
  const accounts = createAccounts({
    pool,
    directUrl,
    directHosts,
    clock,
    read,
    onListening: listeningLines(log),
  });
  opened.push(() => accounts.close());
  const partitionsKeptAtMs = keepPartitions(pool, gate.opened, logRetentionDays, log, stopping.signal);
  keepRollups(pool, gate.opened, log, stopping.signal);
  if (migrateAtBoot) keepOnlineIndexes(directUrl, gate.opened, log, stopping.signal);
  const redis = settings.redisUrl === null ? null : openRedis(settings.redisUrl, log, onStore);
  opened.push(() => redis?.disconnect());
  const onRefusal = refusalLine(log, clock);
  const shared = redis === null ? null : new RedisResponseCache(redis.answers, maxCacheValueBytes, onRefusal);
  return {
    database: {
      ...pools,
      listening: () => accounts.listening(),
      sealedKeys: watchSealedKeys({
        count: metrics.timeQuery('count_sealed_keys', () => countSealedKeys(queryPool, sealer)),
        onUnopened: unopenedLine(log),
        opened: gate.opened,
        monotonicMs: clock.monotonicMs,
      }),
      partitionsKeptAtMs,
    },
    accounts,
    requestLog,
    storeState: gate.state,
    // What this process holds in its memory it could open: sealing it there keeps nobody out.
    answers:
      shared === null
        ? new MemoryResponseCache(settings.cacheMemoryBytes, maxCacheValueBytes)
        : new SealedResponseCache(shared, sealer.sealValue, sealer.openValue),
    registrations: redis === null ? null : countIn(redis.counts, 'registrations'),
    keyChecks: redis === null ? null : countIn(redis.counts, 'key-checks'),
    sharedLimits: redis === null ? null : new RedisLimits(redis.counts, randomUUID(), onRefusal),
    readSpent: metrics.timeQuery('read_spent', (userIds, periods) => readSpent(queryPool, userIds, periods)),
    cacheStats: shared === null ? null : () => shared.stats(),
    close: () => closeAll(opened),
  };
}

/** Where our own stores listen, by name: no user may reach them through a base_url. */
export function storeEndpoints({ databaseUrl, databaseDirectUrl, redisUrl }: Settings): NamedEndpoint[] {
  const databases = [databaseUrl, databaseDirectUrl].flatMap((url) =>
    url === null ? [] : [parseDatabaseUrl(url)],
  );
  // A socket is a path in the file system: no user can name it.
  const endpoints = databases.flatMap(({ hosts }) => hosts).filter(({ host }) => !host.startsWith('/'));
  return redisUrl === null ? endpoints : [...endpoints, ...parseRedisUrl(redisUrl).hosts];
}
