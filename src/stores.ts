import { lookup } from 'node:dns/promises';
import { hostname } from 'node:os';
import type pg from 'pg';
import type { Logger } from 'pino';
import { MemoryResponseCache } from './adapters/memory-cache.ts';
import type { PostgresAccounts } from './adapters/postgres/accounts.ts';
import { createAccounts } from './adapters/postgres/accounts.ts';
import { keepPartitions } from './adapters/postgres/partition-keeper.ts';
import { createPool } from './adapters/postgres/pool.ts';
import { createRequestLog } from './adapters/postgres/request-log.ts';
import type { PostgresRequestLog } from './adapters/postgres/request-log-contract.ts';
import type { SchemaGate } from './adapters/postgres/schema-gate.ts';
import { openSchemaGate } from './adapters/postgres/schema-gate.ts';
import { connectRedis } from './adapters/redis/connection.ts';
import { RedisResponseCache } from './adapters/redis/response-cache.ts';
import { SealedResponseCache } from './adapters/sealed-cache.ts';
import type { Sealer } from './adapters/sealer.ts';
import type { Clock, ResponseCache } from './chat/ports.ts';
import type { Endpoint } from './core/outbound-policy.ts';
import type { Settings } from './settings.ts';
import { SettingsError } from './settings.ts';

/** Pages of logs and statistics have connections of their own, so that they never delay a chat request. */
const queryPoolSize = 4;
/** Two writers and the spool's replay. */
const logPoolSize = 3;
/** A cached answer with its envelope; the tables' own limit is checked where answers are made. */
const maxCacheValueBytes = 20 * 1024 * 1024;
const closeTimeoutMs = 5_000;

/** Everything that remembers something beyond one request. */
export interface Stores {
  readonly pool: pg.Pool;
  readonly queryPool: pg.Pool;
  readonly accounts: PostgresAccounts;
  readonly requestLog: PostgresRequestLog;
  readonly gate: SchemaGate;
  readonly answers: ResponseCache;
  /** Writes what is left, then lets go of every connection. */
  close(): Promise<void>;
}

export interface StoresIo {
  readonly settings: Settings;
  readonly databaseUrl: string;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Opens the stores without waiting for any of them: Postgres and Redis may come later. */
export async function openStores({ settings, databaseUrl, sealer, clock, log }: StoresIo): Promise<Stores> {
  const stopping = new AbortController();
  const directUrl = settings.databaseDirectUrl ?? databaseUrl;
  const pool = createPool(databaseUrl, settings.databasePool);
  const queryPool = createPool(databaseUrl, queryPoolSize);
  const logPool = createPool(directUrl, logPoolSize);
  const { migrateAtBoot, spoolDir, spoolBytes, spoolFull } = settings;
  const gate = openSchemaGate({ pool, directUrl, migrateAtBoot, log, signal: stopping.signal });
  const requestLog = await createRequestLog({
    pool: logPool,
    spoolDir,
    spoolBytes,
    whenFull: spoolFull,
    replica: hostname(),
    clock,
    print: (line) => process.stdout.write(`${line}\n`),
  });
  const accounts = createAccounts({ pool, directUrl, clock });
  keepPartitions(pool, gate.opened, settings.logRetentionDays, log, stopping.signal);
  const redis =
    settings.redisUrl === null
      ? null
      : connectRedis(settings.redisUrl, {
          onUp: () => log.info('cache store is up'),
          onDown: (message) => log.warn({ message }, 'cache store is down; answers are not cached'),
        });
  const store =
    redis === null
      ? new MemoryResponseCache(settings.cacheMemoryBytes, maxCacheValueBytes)
      : new RedisResponseCache(redis, maxCacheValueBytes);
  return {
    pool,
    queryPool,
    accounts,
    requestLog,
    gate,
    answers: new SealedResponseCache(store, sealer.sealValue, sealer.openValue),
    async close() {
      stopping.abort();
      await requestLog.drain(closeTimeoutMs);
      redis?.disconnect();
      await accounts.close();
      await Promise.all([pool.end(), queryPool.end(), logPool.end()]);
    },
  };
}

/** Where our own stores listen: no user may reach them through a base_url. Unresolvable names are left out. */
export async function storeEndpoints(settings: Settings): Promise<Endpoint[]> {
  const defaultPorts: Readonly<Record<string, number>> = { 'postgres:': 5432, 'postgresql:': 5432 };
  const urls = [settings.databaseUrl, settings.databaseDirectUrl, settings.redisUrl];
  const endpoints = urls.map(async (text) => {
    if (text === null) return [];
    let url: URL;
    try {
      url = new URL(text);
    } catch {
      throw new SettingsError('DATABASE_URL, DATABASE_DIRECT_URL and REDIS_URL must be URLs.');
    }
    const port = url.port === '' ? (defaultPorts[url.protocol] ?? 6379) : Number(url.port);
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const addresses = await lookup(host, { all: true }).catch(() => []);
    return addresses.map(({ address }) => ({ address, port }));
  });
  return (await Promise.all(endpoints)).flat();
}
