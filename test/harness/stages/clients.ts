import { nodePackages } from '../clients/node-packages.ts';
import { pythonPackages } from '../clients/python-packages.ts';
import { mustBuild } from '../stage/build.ts';
import { runStage, suiteTally, withPostgres } from '../stage/run-stage.ts';

/**
 * `npm run test:clients [-- vitest arguments]`: the clients that people use, run against the built gateway with
 * scripted vendors. Prints a table of what worked.
 */
await runStage(async () => {
  const packages = await nodePackages('test/clients-matrix', 'the clients for Node');
  const python = await pythonPackages();
  await mustBuild();
  return await withPostgres((folder, databaseUrl) =>
    suiteTally('clients-matrix', folder, {
      TEST_DATABASE_URL: databaseUrl,
      GW_CLIENT_PACKAGES: packages,
      ...(python === null ? {} : { GW_CLIENT_PYTHON: python }),
    }),
  );
});
