import { mkdirSync } from 'node:fs';
import { platform } from 'node:os';
import { join } from 'node:path';
import { gatewayName, ImageBuilder } from '../cluster/images.ts';
import type { NodeCluster } from '../cluster/node.ts';
import { startNode } from '../cluster/node.ts';
import { findNodePrograms } from '../cluster/node-programs.ts';
import { buildTools, nodeToolNames, toolsFolder } from '../cluster/tools.ts';
import { startRegistry } from '../servers/registry.ts';
import { isStopped } from '../stage/children.ts';
import { StageError } from '../stage/project.ts';
import type { RedisProgram } from '../stage/redis-server.ts';
import { findRedisServer } from '../stage/redis-server.ts';
import { oneSkip, runStage, skipOrThrow, suiteTally, withPostgres } from '../stage/run-stage.ts';
import { packageVersion } from '../stage/version.ts';

interface Begun {
  readonly cluster: NodeCluster;
  readonly images: ImageBuilder;
  /** Since the start. */
  readonly seconds: () => number;
}

/**
 * `npm run test:node [-- vitest arguments]`: the image of the Dockerfile and the chart on a real node, made of
 * processes in namespaces of their own and gone afterwards. The first run builds the programs with Go (some minutes).
 * Needs Linux and root; elsewhere the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage(async () => {
  const redis = await prepare().catch(skipUnlessStopped);
  if (redis === null) return oneSkip;
  return withPostgres(async (folder, databaseUrl) => {
    const begun = await startCluster(folder).catch(skipUnlessStopped);
    if (begun === null) return oneSkip;
    const { cluster, images, seconds } = begun;
    const registry = await startRegistry();
    try {
      const archive = await images.buildGateway();
      await cluster.importImage(archive);
      const digest = await images.push(gatewayName, `${registry.host}/team/model-gateway:${packageVersion}`);
      console.log(`The Dockerfile is built, ${seconds()} s after the start.`);
      return await suiteTally('node', folder, {
        KUBECONFIG: cluster.kubeconfig,
        TEST_CLUSTER_TOOLS: toolsFolder(),
        TEST_DATABASE_URL: databaseUrl,
        TEST_NODE_IMAGE: archive,
        TEST_NODE_REGISTRY: registry.host,
        TEST_NODE_DIGEST: digest,
        ...redis,
      });
    } finally {
      await registry.close();
      await cluster.stop();
    }
  });
});

/** What was interrupted is no skip. */
function skipUnlessStopped(error: unknown): null {
  if (isStopped()) throw error;
  return skipOrThrow(error);
}

/** Resolves with the Redis for the tests. Throws StageError where something is missing. */
async function prepare(): Promise<RedisProgram> {
  if (platform() !== 'linux') throw new StageError('A node needs Linux.');
  if (process.getuid?.() !== 0) throw new StageError('A node needs root, for its namespaces and cgroups.');
  await buildTools(nodeToolNames);
  return findRedisServer();
}

/** In a folder of its own, which it closes to others; Postgres, not being root, lives beside it. */
async function startCluster(runFolder: string): Promise<Begun> {
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
