import { startRedis } from '../servers/redis.ts';
import { build, runTool } from '../stage/build.ts';
import { isStopped } from '../stage/children.ts';
import { findRedisServer } from '../stage/redis-server.ts';
import type { Tally } from '../stage/run-stage.ts';
import { failure, runStage, vitestTally, withPostgres } from '../stage/run-stage.ts';

/** `npm test [-- vitest arguments]`: types, lint, build, then vitest with an own Postgres and Redis. */
await runStage(async () => {
  const checks = [
    await step('types', () => runTool('typescript/bin/tsc', ['--noEmit'])),
    await step('lint', () => runTool('@biomejs/biome/bin/biome', ['check', '.'])),
    await step('build', build),
  ];
  const tests = await withServers((folder, servers) => vitestTally([], folder, servers)).catch(failure);
  return { ...tests, failed: tests.failed + checks.filter((succeeded) => !succeeded).length };
});

/** A failed check counts as one failure. */
async function step(name: string, work: () => Promise<boolean>): Promise<boolean> {
  if (isStopped()) return false;
  const begin = Date.now();
  const succeeded = await work();
  console.log(`${name}: ${succeeded ? 'ok' : 'FAILED'} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
  return succeeded;
}

/** Hands the addresses of fresh servers to `work` as environment; they are gone afterwards, whatever happens. */
async function withServers(
  work: (folder: string, env: Record<string, string | undefined>) => Promise<Tally>,
): Promise<Tally> {
  const given = process.env['REDIS_URL'];
  Object.assign(process.env, given === undefined ? await findRedisServer() : {});
  return await withPostgres(async (folder, postgresUrl) => {
    const redis = given === undefined ? await startRedis() : { url: given, close: async () => {} };
    // The tests choose their settings themselves.
    const unset = { DATABASE_URL: undefined, DATABASE_DIRECT_URL: undefined, REDIS_URL: undefined };
    try {
      return await work(folder, { ...unset, TEST_DATABASE_URL: postgresUrl, TEST_REDIS_URL: redis.url });
    } finally {
      await redis.close();
    }
  });
}
