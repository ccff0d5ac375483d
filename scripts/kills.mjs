import { build } from './lib/build.mjs';
import { LaunchError } from './lib/project.mjs';
import { runStage, vitestTally, withPostgres } from './lib/stage.mjs';

/**
 * `npm run test:kills [-- vitest arguments]`: fifty SIGKILLs, twenty outages of Postgres and twenty drains of the built
 * gateway under load; the ledgers of clients, vendors and log rows must agree. About five minutes.
 */
await runStage('scripts/kills.mjs', async (node) => {
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');
  return await withPostgres((folder, databaseUrl) =>
    vitestTally(node, 'test/kills/vitest.config.ts', folder, { TEST_DATABASE_URL: databaseUrl }),
  );
});
