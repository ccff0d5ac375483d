import { cpSync, lutimesSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { toolPath } from '../../test/harness/cluster/tools.ts';
import { inProject } from '../../test/harness/stage/project.ts';
import type { ReleaseFacts } from './facts.ts';
import { mustRun } from './must-run.ts';

/** The image that a chart installs by default. */
export interface ChartImage {
  readonly repository: string;
  /** Empty where there is none yet: then it is found by its tag, the version. */
  readonly digest: string;
}

/** Packages the chart for this image into `folder`: two of one commit are equal. Resolves with its path. */
export async function packageChart(
  { version, committedAt }: ReleaseFacts,
  { repository, digest }: ChartImage,
  folder: string,
): Promise<string> {
  const staged = join(folder, 'staged', 'model-gateway');
  mkdirSync(staged, { recursive: true });
  cpSync(inProject('charts', 'model-gateway'), staged, { recursive: true });
  const values = join(staged, 'values.yaml');
  const document = parseDocument(readFileSync(values, 'utf8'));
  document.setIn(['image', 'repository'], repository);
  document.setIn(['image', 'digest'], digest);
  writeFileSync(values, document.toString({ lineWidth: 0 }));
  const card = join(staged, 'Chart.yaml');
  const image = digest === '' ? `${repository}:${version}` : `${repository}@${digest}`;
  const about = parseDocument(readFileSync(card, 'utf8'));
  about.setIn(['annotations', 'artifacthub.io/images'], `- name: model-gateway\n  image: ${image}\n`);
  writeFileSync(card, about.toString({ lineWidth: 0 }));
  // Helm keeps the age of files.
  for (const path of readdirSync(staged, { recursive: true, encoding: 'utf8' })) {
    lutimesSync(join(staged, path), committedAt, committedAt);
  }
  await mustRun([toolPath('helm'), 'package', staged, '--destination', folder]);
  return join(folder, `model-gateway-${version}.tgz`);
}
