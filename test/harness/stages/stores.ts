import { join } from 'node:path';
import { mustBuild } from '../stage/build.ts';
import { librariesBelow, unpackDebianPackages } from '../stage/debian-packages.ts';
import { findRedisServer, findValkeyServer } from '../stage/redis-server.ts';
import { oneSkip, runStage, skipOrThrow, suiteTally, withPostgres } from '../stage/run-stage.ts';

/** PgBouncer, a forward proxy and a Postgres with its tools of Debian 12, with the libraries that a machine may lack. */
const debianPackages = [
  ...['pgbouncer', 'libc-ares2', 'libevent-2.1-7', 'tinyproxy-bin'],
  ...['postgresql-15', 'postgresql-client-15', 'libpq5', 'libicu72', 'libxml2', 'libxslt1.1'],
  ...['libldap-2.5-0', 'libsasl2-2', 'liblz4-1', 'libreadline8'],
];

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
  const folder = await unpackDebianPackages('stores-2', debianPackages);
  return {
    ...(await findRedisServer()),
    ...(await findValkeyServer().catch(skipOrThrow)),
    TEST_PGBOUNCER: join(folder, 'usr', 'sbin', 'pgbouncer'),
    TEST_DEBIAN_POSTGRES: folder,
    TEST_TINYPROXY: join(folder, 'usr', 'bin', 'tinyproxy'),
    TEST_STORES_LIBRARIES: librariesBelow(folder),
  };
}
