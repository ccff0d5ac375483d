import { build } from './lib/build.mjs';
import { LaunchError } from './lib/project.mjs';
import { findRedisServer } from './lib/redis-binary.mjs';
import { makeRunFolder } from './lib/run-folder.mjs';
import { oneSkip, runStage, skipOrThrow, vitestTally } from './lib/stage.mjs';
import { findPrometheus } from './observe/find-prometheus.mjs';

/**
 * `npm run test:prometheus [-- vitest arguments]`: dashboards, rules and alerts with Prometheus itself, unpacked from its
 * Debian package. Without it the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage('scripts/prometheus.mjs', async (node) => {
  const programs = await findPrometheus().catch(skipOrThrow);
  const redis = await findRedisServer().catch(skipOrThrow);
  if (programs === null || redis === null) return oneSkip;
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');
  const folder = makeRunFolder();
  try {
    return await vitestTally(node, 'test/prometheus/vitest.config.ts', folder.path, {
      TEST_REDIS_SERVER: redis.program,
      ...(redis.libraries ? { TEST_REDIS_LIBRARIES: redis.libraries } : {}),
      TEST_PROMETHEUS: programs.prometheus,
      TEST_PROMTOOL: programs.promtool,
    });
  } finally {
    await folder.remove();
  }
});
