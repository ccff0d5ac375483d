import { mkdirSync } from 'node:fs';
import { platform } from 'node:os';
import { join } from 'node:path';
import { isStopped } from '../lib/children.mjs';
import { LaunchError } from '../lib/project.mjs';
import { findRedisServer } from '../lib/redis-binary.mjs';
import { oneSkip, runStage, skipOrThrow, vitestTally, withPostgres } from '../lib/stage.mjs';
import { ImageBuilder } from './images.mjs';
import { startNode } from './node.mjs';
import { findNodePrograms } from './node-programs.mjs';
import { buildTools, nodeToolNames, toolsFolder } from './tools.mjs';

/**
 * `npm run test:node [-- vitest arguments]`: the image of the Dockerfile and the chart on a real node, made of processes in
 * namespaces of their own and gone afterwards. The first run builds the programs with Go (some minutes). Needs Linux and
 * root; elsewhere the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage('scripts/cluster/run-node.mjs', async (node) => {
  const redis = await prepare().catch(skipUnlessStopped);
  if (redis === null) return oneSkip;
  return withPostgres(async (folder, databaseUrl) => {
    const begun = await startCluster(folder).catch(skipUnlessStopped);
    if (begun === null) return oneSkip;
    const { cluster, images } = begun;
    try {
      const archive = await images.buildGateway(node);
      await cluster.importImage(archive);
      console.log(`The Dockerfile is built, ${begun.seconds()} s after the start.`);
      const settings = {
        KUBECONFIG: cluster.kubeconfig,
        TEST_CLUSTER_TOOLS: toolsFolder(),
        TEST_DATABASE_URL: databaseUrl,
        TEST_NODE_IMAGE: archive,
        TEST_REDIS_SERVER: redis.program,
        ...(redis.libraries === undefined ? {} : { TEST_REDIS_LIBRARIES: redis.libraries }),
      };
      return await vitestTally(node, 'test/node/vitest.config.ts', folder, settings);
    } finally {
      await cluster.stop();
    }
  });
});

/** What was interrupted is no skip. */
function skipUnlessStopped(error) {
  if (isStopped()) throw error;
  return skipOrThrow(error);
}

/** Resolves with the Redis for the tests. Throws LaunchError where something is missing. */
async function prepare() {
  if (platform() !== 'linux') throw new LaunchError('A node needs Linux.');
  if (process.getuid() !== 0) throw new LaunchError('A node needs root, for its namespaces and cgroups.');
  await buildTools(nodeToolNames);
  return findRedisServer();
}

/** In a folder of its own, which it closes to others; Postgres, not being root, lives beside it. */
async function startCluster(runFolder) {
  const folder = join(runFolder, 'node');
  mkdirSync(folder);
  const begin = Date.now();
  const seconds = () => Math.round((Date.now() - begin) / 1000);
  const programs = await findNodePrograms(folder);
  const images = new ImageBuilder(folder, programs);
  const cluster = await startNode(folder, programs, await images.buildPause());
  console.log(`A node of its own is up after ${seconds()} s.`);
  return { cluster, images, seconds };
}
