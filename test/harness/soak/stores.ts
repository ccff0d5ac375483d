import type { SentinelWorld } from '../servers/redis-servers.ts';
import { startSentinels } from '../servers/redis-servers.ts';
import type { ReplicatedPostgres } from '../servers/replicated-postgres.ts';
import { startReplicatedPostgres } from '../servers/replicated-postgres.ts';

/** Stores as companies have them: each primary has another server that takes over. */
export interface SoakStores {
  readonly postgres: ReplicatedPostgres;
  readonly redis: SentinelWorld;
  close(): Promise<void>;
}

/** Postgres with a synchronous standby, and Redis with a replica and sentinels. */
export async function startSoakStores(): Promise<SoakStores> {
  const postgres = await startReplicatedPostgres();
  try {
    const redis = await startSentinels();
    const close = async () => {
      await redis.close();
      await postgres.close();
    };
    return { postgres, redis, close };
  } catch (error) {
    await postgres.close();
    throw error;
  }
}
