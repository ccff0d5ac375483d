import { once } from 'node:events';
import { Redis } from 'ioredis';
import { beforeEach, onTestFinished } from 'vitest';
import type { RedisConnection } from '../../../src/adapters/redis/connection.ts';
import { connectRedis } from '../../../src/adapters/redis/connection.ts';
import type { RedisProcess } from './redis.ts';
import { startRedis } from './redis.ts';
import { useServer, useStarted } from './use-started.ts';

/** Where slowness is not what is tested: a busy machine must not look like a sick server. */
const patientMs = 5_000;

export interface RedisUnderTest {
  readonly server: RedisProcess;
  /** Looks into the server past everything of ours. */
  readonly direct: Redis;
  /** A connection as a replica has it, ready; it ends with the running test. */
  connect(commandTimeoutMs?: number): Promise<RedisConnection>;
}

/** An own server for the tests of the file or `describe` that calls this, emptied before each of them. */
export function useRedis(): RedisUnderTest {
  const server = useServer(startRedis);
  const direct = useStarted(
    async () => new Redis(server.url).on('error', () => undefined),
    async (client) => client.disconnect(),
  );
  beforeEach(async () => {
    await direct.flushall();
  });
  return {
    server,
    direct,
    async connect(commandTimeoutMs = patientMs) {
      const redis = connectRedis(server.url, { commandTimeoutMs });
      onTestFinished(() => redis.disconnect());
      if (redis.status !== 'ready') await once(redis, 'ready');
      return redis;
    },
  };
}
