import { platform } from 'node:os';
import { findEmulator, findForeignBase } from '../cluster/foreign-base.ts';
import { findNodePrograms } from '../cluster/node-programs.ts';
import { buildTools, releaseToolNames, toolsFolder } from '../cluster/tools.ts';
import { StageError } from '../stage/project.ts';
import { oneSkip, runStage, skipOrThrow, suiteTally, withRunFolder } from '../stage/run-stage.ts';

/**
 * `npm run test:release [-- vitest arguments]`: a release, published to a registry of its own, signed by a key of its own,
 * and taken from there again. The first run builds the programs with Go (about eight minutes). Needs Linux and root, as
 * whoever builds an image without a daemon does; elsewhere it is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage(() =>
  withRunFolder(async (folder) => {
    const isReady = await prepare(folder).then(() => true, skipOrThrow);
    if (isReady === null) return oneSkip;
    return suiteTally('release', folder, { TEST_CLUSTER_TOOLS: toolsFolder(), TEST_RELEASE_FOLDER: folder });
  }),
);

/** Throws StageError where something is missing. */
async function prepare(folder: string): Promise<void> {
  if (platform() !== 'linux') throw new StageError('Images are built on Linux here.');
  if (process.getuid?.() !== 0)
    throw new StageError('An image is built by root here, for the namespaces of its steps.');
  await buildTools(releaseToolNames);
  await findNodePrograms(folder);
  await findForeignBase();
  await findEmulator();
}
