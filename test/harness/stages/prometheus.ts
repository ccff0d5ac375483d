import { mustBuild } from '../stage/build.ts';
import { findPrometheus } from '../stage/prometheus-programs.ts';
import { findRedisServer } from '../stage/redis-server.ts';
import { oneSkip, runStage, skipOrThrow, suiteTally, withRunFolder } from '../stage/run-stage.ts';

/**
 * `npm run test:prometheus [-- vitest arguments]`: dashboards, rules and alerts with Prometheus itself, unpacked from its
 * Debian package. Without it the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage(async () => {
  const programs = await findPrometheus().catch(skipOrThrow);
  const redis = await findRedisServer().catch(skipOrThrow);
  if (programs === null || redis === null) return oneSkip;
  await mustBuild();
  return await withRunFolder((folder) =>
    suiteTally('prometheus', folder, {
      ...redis,
      TEST_PROMETHEUS: programs.prometheus,
      TEST_PROMTOOL: programs.promtool,
    }),
  );
});
