import type { TestProject } from 'vitest/node';
import { createNamespace, kubectl, must } from '../../cluster/cluster.ts';
import type { TestDatabase } from '../../harness/servers/postgres.ts';
import { createDatabase } from '../../harness/servers/postgres.ts';
import { startRedis } from '../../harness/servers/redis.ts';
import { hostAddress, openDoor } from './door.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Holds the shared release and the Secrets that it names. */
    namespace: string;
    /** The shared release's database, as this machine reaches it. */
    databaseUrl: string;
  }
}

const postgresPort = 5432;
const redisPort = 6379;

/** The same server and database, as pods reach them. */
export function forPods(url: string, port = postgresPort): string {
  const address = new URL(url);
  address.hostname = hostAddress;
  address.port = String(port);
  return address.href;
}

/** Puts text into a Secret of the namespace. */
export async function writeSecret(
  namespace: string,
  name: string,
  entries: Readonly<Record<string, string>>,
): Promise<void> {
  const metadata = { name, namespace };
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata, stringData: entries };
  await must(kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], JSON.stringify(secret)));
}

/** A real Postgres and Redis for the pods of all files, a namespace, and the Secrets that lead there. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const redis = await startRedis();
  const database: TestDatabase = await createDatabase({ migrated: false });
  const doors = [await openDoor(postgresPort, database.url), await openDoor(redisPort, redis.url)];
  const { name } = await createNamespace();
  await writeSecret(name, 'gateway-database', { url: forPods(database.url) });
  await writeSecret(name, 'gateway-redis', { url: forPods(redis.url, redisPort) });
  project.provide('namespace', name);
  project.provide('databaseUrl', database.url);
  return async () => {
    for (const door of doors) await door.close();
    await redis.close();
    await database.drop();
  };
}
