import { modelServerPackage } from '../real-model/model-server-package.ts';
import { mustBuild } from '../stage/build.ts';
import { oneSkip, runStage, skipOrThrow, suiteTally, withPostgres } from '../stage/run-stage.ts';

/**
 * `npm run test:real-model [-- vitest arguments]`: llama.cpp's server with a tiny random model, used through the built
 * gateway as a self_hosted key. Where the server cannot be had the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage(async () => {
  const server = await modelServerPackage().catch(skipOrThrow);
  if (server === null) return oneSkip;
  console.log(`Model server: ${server.name}`);
  await mustBuild();
  return await withPostgres((folder, databaseUrl) =>
    suiteTally('real-model', folder, {
      TEST_DATABASE_URL: databaseUrl,
      GW_TEST_PYTHON: server.python,
      GW_TEST_PYTHON_PACKAGES: server.packages,
    }),
  );
});
