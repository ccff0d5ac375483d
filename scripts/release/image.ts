import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { baseImage } from '../../test/harness/stage/base-image.ts';
import { digestIn } from './digest.ts';
import type { ReleaseFacts } from './facts.ts';
import type { Command } from './must-run.ts';
import { mustRun, shownCommand } from './must-run.ts';

/** One image each, in one index. */
export const platforms: readonly string[] = ['linux/amd64', 'linux/arm64'];

/** What the Dockerfile is told of a release, for any builder. */
export function buildArguments({ version, revision }: ReleaseFacts, baseDigest: string): string[] {
  const values = { VERSION: version, REVISION: revision, NODE_DIGEST: baseDigest };
  return Object.entries(values).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]);
}

/** Whether Docker is there and answers. */
export async function hasDocker(): Promise<boolean> {
  return mustRun(['docker', 'info']).then(
    () => true,
    () => false,
  );
}

/** What the name of the base leads to today: it is part of the release, so that it can be built again. */
async function baseDigest(): Promise<string> {
  const format = '{{.Manifest.Digest}}';
  const command: Command = ['docker', 'buildx', 'imagetools', 'inspect', baseImage(), '--format', format];
  return digestIn(await mustRun(command), command);
}

/**
 * Builds for all platforms to `output`. Provenance is not part of it, since it would make two builds of one commit differ:
 * the workflow attests it of the digest. Files have the age of the commit.
 */
export const imageBuild = (
  facts: ReleaseFacts,
  digest: string,
  output: string,
  metadata: string,
): Command => [
  'docker',
  ...[
    'buildx',
    'build',
    '--platform',
    platforms.join(),
    '--provenance=false',
    ...buildArguments(facts, digest),
  ],
  ...['--build-arg', `SOURCE_DATE_EPOCH=${facts.committedAt}`],
  ...['--output', `${output},rewrite-timestamp=true`, '--metadata-file', metadata, '.'],
];

/** Builds and pushes by Docker; resolves with the digest. Throws StageError. */
export async function pushByDocker(facts: ReleaseFacts, reference: string, folder: string): Promise<string> {
  const metadata = join(folder, 'image.json');
  const output = `type=image,name=${reference},push=true,oci-mediatypes=true`;
  const command = imageBuild(facts, await baseDigest(), output, metadata);
  console.log(shownCommand(command));
  await mustRun(command);
  const { 'containerimage.digest': digest } = JSON.parse(readFileSync(metadata, 'utf8')) as Record<
    string,
    string
  >;
  if (digest === undefined) throw new Error(`${metadata} names no digest`);
  return digest;
}
