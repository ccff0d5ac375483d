import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toolPath } from '../../test/harness/cluster/tools.ts';
import { packageChart } from './chart.ts';
import { digestIn } from './digest.ts';
import type { ReleaseFacts } from './facts.ts';
import type { Command } from './must-run.ts';
import { mustRun, shownCommand } from './must-run.ts';
import { softwareBill } from './sbom.ts';

/** With what a release is made: in the workflow Docker and its own identity, in tests what they have. */
export interface Hands {
  /** Builds and pushes the image; resolves with its digest. */
  pushImage(reference: string): Promise<string>;
  /** What cosign signs with; nothing: the identity of the workflow that runs it. */
  readonly signer: readonly string[];
  /** For a registry without TLS. */
  readonly plainHttp: boolean;
}

/** What there is afterwards, by digest. */
export interface Published {
  readonly image: string;
  readonly chart: string;
  /** Files for those who take the release without a registry. */
  readonly files: readonly string[];
}

export const imageRepository = (registry: string): string => `${registry}/model-gateway`;
export const chartFolder = (registry: string): string => `${registry}/charts`;

/** Signs what a digest names. */
export const signing = (subject: string, signer: readonly string[]): Command => [
  toolPath('cosign'),
  ...['sign', '--yes', ...signer, subject],
];

/** Signs that the image holds what the bill says. */
export const attesting = (subject: string, bill: string, signer: readonly string[]): Command => [
  toolPath('cosign'),
  ...['attest', '--yes', ...signer, '--type', 'spdxjson', '--predicate', bill, subject],
];

export const chartPush = (path: string, registry: string, plainHttp: boolean): Command => [
  toolPath('helm'),
  ...['push', path, `oci://${chartFolder(registry)}`, ...(plainHttp ? ['--plain-http'] : [])],
];

/** Pushes and signs image and chart; the chart names the image by its digest. Throws StageError. */
export async function publish(
  facts: ReleaseFacts,
  registry: string,
  folder: string,
  { pushImage, signer, plainHttp }: Hands,
): Promise<Published> {
  const repository = imageRepository(registry);
  const digest = await pushImage(`${repository}:${facts.version}`);
  const image = `${repository}@${digest}`;
  const bill = writeBill(facts, folder);
  await told(signing(image, signer));
  await told(attesting(image, bill, signer));
  const archive = await packageChart(facts, { repository, digest }, folder);
  const push = chartPush(archive, registry, plainHttp);
  const chart = `${chartFolder(registry)}/model-gateway@${digestIn(await told(push), push)}`;
  await told(signing(chart, signer));
  return { image, chart, files: [archive, bill] };
}

/** Writes the bill of software into `folder`; resolves with its path. */
export function writeBill(facts: ReleaseFacts, folder: string): string {
  const path = join(folder, `model-gateway-${facts.version}.spdx.json`);
  writeFileSync(path, softwareBill(facts));
  return path;
}

function told(command: Command): Promise<string> {
  console.log(shownCommand(command));
  return mustRun(command);
}
