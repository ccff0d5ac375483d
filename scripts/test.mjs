import { readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { build, runTool } from './lib/build.mjs';
import { handleStopSignals, isStopped, run } from './lib/children.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { findNode } from './lib/node-binary.mjs';
import { inProject, LaunchError, root } from './lib/project.mjs';
import { findRedisServer } from './lib/redis-binary.mjs';
import { makeRunFolder } from './lib/run-folder.mjs';

/**
 * `npm test [-- vitest arguments]`: types, lint, build, then vitest with an own Postgres and Redis. Needs any
 * Node >= 18 to begin with. The last line is "N passed, N failed, N skipped"; a failed check counts as one failure.
 */
async function main() {
  handleStopSignals();
  await ensureInstalled();
  if (isStopped()) return 1;
  const node = await findNode();
  if (isStopped()) return 1;
  if (node !== process.execPath) return await repeatUnder(node);

  const tally = { passed: 0, failed: 0, skipped: 0 };
  if (!(await step('types', () => runTool(node, 'typescript/bin/tsc', ['--noEmit'])))) tally.failed += 1;
  if (!(await step('lint', () => runTool(node, '@biomejs/biome/bin/biome', ['check', '.']))))
    tally.failed += 1;
  if (!(await step('build', () => build(node)))) tally.failed += 1;
  const tests = isStopped()
    ? null
    : await withServers((env, folder) => runVitest(node, env, folder)).catch(explain);
  for (const key of Object.keys(tally)) tally[key] += tests?.[key] ?? 0;
  if (tests === null) tally.failed += 1;
  console.log(`${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped`);
  return tally.failed === 0 ? 0 : 1;
}

/** A reason that is no bug of ours is one line. */
function explain(error) {
  console.error(error instanceof LaunchError || error?.name === 'StartError' ? error.message : error);
  return null;
}

/** The servers are started from TypeScript, which only the newer Node reads. */
async function repeatUnder(node) {
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  const stdio = ['ignore', 'inherit', 'inherit', 'ipc'];
  const { code } = await run(node, [inProject('scripts', 'test.mjs'), ...process.argv.slice(2)], {
    cwd: root,
    env,
    stdio,
  });
  return code ?? 1;
}

async function step(name, work) {
  if (isStopped()) return false;
  const begin = Date.now();
  const succeeded = await work();
  console.log(`${name}: ${succeeded ? 'ok' : 'FAILED'} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
  return succeeded;
}

/** Hands the addresses of fresh servers to `work` as environment; they are gone afterwards, whatever happens. */
async function withServers(work) {
  const redisProgram = process.env.REDIS_URL ? null : await findRedisServer();
  if (redisProgram !== null) {
    process.env.TEST_REDIS_SERVER = redisProgram.program;
    if (redisProgram.libraries) process.env.TEST_REDIS_LIBRARIES = redisProgram.libraries;
  }
  const { startPostgres } = await import('../test/support/postgres.ts');
  const { startRedis } = await import('../test/support/redis.ts');
  const folder = makeRunFolder();
  const servers = [];
  try {
    const postgres = await startPostgres();
    servers.push(postgres);
    const redis = redisProgram === null ? { url: process.env.REDIS_URL } : await startRedis();
    if (redisProgram !== null) servers.push(redis);
    return await work({ TEST_DATABASE_URL: postgres.url, TEST_REDIS_URL: redis.url }, folder.path);
  } finally {
    for (const server of servers) await server.close();
    await folder.remove();
  }
}

/** The numbers of the run, or null when it did not come to an end. */
async function runVitest(node, servers, folder) {
  const tallyFile = join(folder, 'tally.json');
  const env = { ...process.env, ...servers, GW_TEST_TALLY_FILE: tallyFile };
  // The tests choose their settings themselves.
  for (const name of ['DATABASE_URL', 'DATABASE_DIRECT_URL', 'REDIS_URL']) delete env[name];
  try {
    const vitest = [inProject('node_modules', 'vitest', 'vitest.mjs'), 'run', ...process.argv.slice(2)];
    const { code } = await run(node, vitest, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
    const tally = JSON.parse(readFileSync(tallyFile, 'utf8'));
    // Coverage thresholds and the like fail a run without a failed test.
    if (code !== 0 && tally.failed === 0) tally.failed = 1;
    return tally;
  } catch {
    return null;
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  explain(error);
  console.log('0 passed, 1 failed, 0 skipped');
  process.exitCode = 1;
}
