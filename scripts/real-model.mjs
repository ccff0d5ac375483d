import { build } from './lib/build.mjs';
import { LaunchError } from './lib/project.mjs';
import { oneSkip, runStage, skipOrThrow, vitestTally, withPostgres } from './lib/stage.mjs';
import { modelServerPackage } from './real-model/model-server-package.mjs';

/**
 * `npm run test:real-model [-- vitest arguments]`: llama.cpp's server with a tiny random model, used through the built
 * gateway as a self_hosted key. Where the server cannot be had the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage('scripts/real-model.mjs', async (node) => {
  const server = await modelServerPackage().catch(skipOrThrow);
  if (server === null) return oneSkip;
  console.log(`Model server: ${server.name}`);
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');
  return withPostgres((folder, databaseUrl) =>
    vitestTally(node, 'test/real-model/vitest.config.ts', folder, {
      TEST_DATABASE_URL: databaseUrl,
      GW_TEST_PYTHON: server.python,
      GW_TEST_PYTHON_PACKAGES: server.packages,
    }),
  );
});
