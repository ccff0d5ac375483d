import type { Logger } from 'pino';
import type { RedisConnection } from '../adapters/redis/connection.ts';
import { connectRedis } from '../adapters/redis/connection.ts';
import type { CacheConnections } from '../adapters/redis/response-cache.ts';
import { SharedWindows } from '../adapters/redis/shared-windows.ts';
import type { RedisHost } from '../core/net/redis-url.ts';
import type { SharedCount } from '../limits/ports.ts';
import { countedWindowMs } from '../limits/window-counter.ts';
import { redisLines } from './store-lines.ts';

interface RedisConnections {
  readonly answers: CacheConnections;
  readonly counts: RedisConnection;
  disconnect(): void;
}

/** Four megabytes at ten a second: as many as may be on the way at once. */
const bulkTimeoutMs = 500;

/**
 * Replies come in their order on each: a megabyte of an answer must keep no look-up waiting, and a look-up no count of
 * a limit.
 */
export function openRedis(url: string, log: Logger, onServer: (server: RedisHost) => void): RedisConnections {
  const short = connectRedis(url, { ...redisLines(log), onServer });
  const bulk = connectRedis(url, { onServer, commandTimeoutMs: bulkTimeoutMs });
  const counts = connectRedis(url, { onServer });
  return {
    answers: { short, bulk },
    counts,
    disconnect: () => {
      short.disconnect();
      bulk.disconnect();
      counts.disconnect();
    },
  };
}

/** What all replicas count together, under one name. */
export function countIn(redis: RedisConnection, group: string): SharedCount {
  const windows = new SharedWindows(redis, group, countedWindowMs);
  return (limits) => windows.take(limits);
}
