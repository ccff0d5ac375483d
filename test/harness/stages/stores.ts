import { join } from 'node:path';
import { mustBuild } from '../stage/build.ts';
import { librariesBelow, unpackDebianPackages } from '../stage/debian-packages.ts';
import { findRedisServer } from '../stage/redis-server.ts';
import { oneSkip, runStage, skipOrThrow, suiteTally, withPostgres } from '../stage/run-stage.ts';

/** PgBouncer and a forward proxy of Debian 12, with the libraries that a machine may lack. */
const debianPackages = ['pgbouncer', 'libc-ares2', 'libevent-2.1-7', 'tinyproxy-bin'];

/**
 * `npm run test:stores [-- vitest arguments]`: Postgres, Redis and networks as companies have them: behind TLS, poolers
 * and proxies, with standbys that take over. Without the programs the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage(async () => {
  const programs = await findPrograms().catch(skipOrThrow);
  if (programs === null) return oneSkip;
  await mustBuild();
  return await withPostgres((folder, databaseUrl) =>
    suiteTally('stores', folder, { TEST_DATABASE_URL: databaseUrl, ...programs }),
  );
});

/** Where the tests find the programs, as environment variables. Throws StageError. */
async function findPrograms(): Promise<Record<string, string>> {
  const folder = await unpackDebianPackages('stores', debianPackages);
  return {
    ...(await findRedisServer()),
    TEST_PGBOUNCER: join(folder, 'usr', 'sbin', 'pgbouncer'),
    TEST_TINYPROXY: join(folder, 'usr', 'bin', 'tinyproxy'),
    TEST_STORES_LIBRARIES: librariesBelow(folder),
  };
}
