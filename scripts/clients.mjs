import { nodePackages } from './clients/node-packages.mjs';
import { pythonPackages } from './clients/python-packages.mjs';
import { build } from './lib/build.mjs';
import { LaunchError } from './lib/project.mjs';
import { runStage, vitestTally, withPostgres } from './lib/stage.mjs';

/**
 * `npm run test:clients [-- vitest arguments]`: the clients that people use, run against the built gateway with
 * scripted vendors. Prints a table of what worked.
 */
await runStage('scripts/clients.mjs', async (node) => {
  const packages = await nodePackages();
  const python = await pythonPackages();
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');
  return withPostgres((folder, databaseUrl) =>
    vitestTally(node, 'test/clients-matrix/vitest.config.ts', folder, {
      TEST_DATABASE_URL: databaseUrl,
      GW_CLIENT_PACKAGES: packages,
      ...(python === null ? {} : { GW_CLIENT_PYTHON: python }),
    }),
  );
});
