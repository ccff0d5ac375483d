import type { Logger } from 'pino';
import type { RedisConnection } from '../adapters/redis/connection.ts';
import { connectRedis } from '../adapters/redis/connection.ts';
import { SharedWindows } from '../adapters/redis/shared-windows.ts';
import type { RedisHost } from '../core/net/redis-url.ts';
import type { SharedCount } from '../limits/ports.ts';
import { countedWindowMs } from '../limits/window-counter.ts';
import { redisLines } from './store-lines.ts';

interface RedisConnections {
  readonly answers: RedisConnection;
  readonly counts: RedisConnection;
  disconnect(): void;
}

/** Replies come in their order on each: a megabyte of an answer must keep no count of a limit waiting. */
export function openRedis(url: string, log: Logger, onServer: (server: RedisHost) => void): RedisConnections {
  const answers = connectRedis(url, { ...redisLines(log), onServer });
  const counts = connectRedis(url, { onServer });
  return {
    answers,
    counts,
    disconnect: () => {
      answers.disconnect();
      counts.disconnect();
    },
  };
}

/** What all replicas count together, under one name. */
export function countIn(redis: RedisConnection, group: string): SharedCount {
  const windows = new SharedWindows(redis, group, countedWindowMs);
  return (limits) => windows.take(limits);
}
