import { mustBuild } from '../stage/build.ts';
import { runStage, suiteTally, withPostgres } from '../stage/run-stage.ts';

/**
 * `npm run test:kills [-- vitest arguments]`: fifty SIGKILLs, twenty outages of Postgres and twenty drains of the built
 * gateway under load; the ledgers of clients, vendors and log rows must agree. About seven minutes.
 */
await runStage(async () => {
  await mustBuild();
  return await withPostgres((folder, databaseUrl) =>
    suiteTally('kills', folder, { TEST_DATABASE_URL: databaseUrl }),
  );
});
