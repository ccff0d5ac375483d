import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildTools } from '../../test/harness/cluster/tools.ts';
import { handleStopSignals } from '../../test/harness/stage/children.ts';
import { inProject, StageError } from '../../test/harness/stage/project.ts';
import { releaseNotes } from './changelog.ts';
import { packageChart } from './chart.ts';
import { releaseChecks } from './checks.ts';
import type { ReleaseFacts } from './facts.ts';
import { readFacts, tagOf } from './facts.ts';
import { hasDocker, imageBuild, pushByDocker } from './image.ts';
import { mustRun, shownCommand } from './must-run.ts';
import {
  attesting,
  chartFolder,
  chartPush,
  imageRepository,
  publish,
  signing,
  writeBill,
} from './publish.ts';

const usage = `npm run release -- --check | --dry-run

Checks whether this commit can be released as the version of package.json. With --dry-run it makes everything that can be
made here (chart, bill of software, release notes, and the image where Docker is there) in release/, and prints what would
be pushed and signed. Without either it pushes and signs; that is left to .github/workflows/release.yml, which a tag
starts. The registry is GW_RELEASE_REGISTRY, such as registry.example.com/team.`;

/** Named where there is no other: nothing answers there. */
const exampleRegistry = 'registry.example.com/team';
const digestToCome = '<digest>';
const notesFile = 'notes.md';

/** False where something stands in the way of a release. */
function areChecksGood(facts: ReleaseFacts): boolean {
  const checks = releaseChecks(facts);
  for (const { name, problem } of checks)
    console.log(problem === null ? `ok   ${name}` : `NOT  ${name}: ${problem}`);
  return checks.every(({ problem }) => problem === null);
}

async function dryRun(facts: ReleaseFacts, registry: string, folder: string): Promise<void> {
  const repository = imageRepository(registry);
  const bill = writeBill(facts, folder);
  const chart = await packageChart(facts, { repository, digest: '' }, folder);
  console.log(`made ${bill}\nmade ${chart}`);
  const metadata = join(folder, 'image.json');
  if (await hasDocker()) {
    const output = `type=oci,dest=${join(folder, 'image.tar')}`;
    await mustRun(imageBuild(facts, '', output, metadata));
    console.log(`made ${join(folder, 'image.tar')}`);
  } else {
    console.log('The image is not built: there is no Docker that answers.');
  }
  const image = `${repository}@${digestToCome}`;
  const push = `type=image,name=${repository}:${facts.version},push=true,oci-mediatypes=true`;
  const commands = [
    imageBuild(facts, digestToCome, push, metadata),
    signing(image, []),
    attesting(image, bill, []),
    chartPush(chart, registry, false),
    signing(`${chartFolder(registry)}/model-gateway@${digestToCome}`, []),
  ];
  console.log('\nThe workflow would run:');
  for (const command of commands) console.log(`  ${shownCommand(command)}`);
  console.log(
    'Then it attests the provenance of the image, and makes the page of the release from notes, chart and bill.',
  );
}

/** Hands the digests on to the steps of the workflow that follow. */
async function release(facts: ReleaseFacts, registry: string, folder: string): Promise<void> {
  const pushImage = (reference: string) => pushByDocker(facts, reference, folder);
  const { image, chart } = await publish(facts, registry, folder, {
    pushImage,
    signer: [],
    plainHttp: false,
  });
  console.log(`published ${image}\npublished ${chart}`);
  // Without a heading, so that they stand apart from what has changed.
  appendFileSync(join(folder, notesFile), `\nImage: \`${image}\`  \nChart: \`oci://${chart}\`\n`);
  const [repository, digest] = image.split('@');
  const outputs = process.env['GITHUB_OUTPUT'];
  if (outputs !== undefined) appendFileSync(outputs, `image=${repository}\ndigest=${digest}\n`);
}

async function main(): Promise<boolean> {
  const flag = { type: 'boolean' } as const;
  const { values } = parseArgs({ options: { check: flag, 'dry-run': flag, help: flag } });
  if (values.help === true) {
    console.log(usage);
    return true;
  }
  const isDry = values['dry-run'] === true;
  const facts = readFacts();
  if (values.check === true) return areChecksGood(facts);
  if (!isDry && facts.startedBy !== tagOf(facts.version)) {
    throw new StageError(
      `Only the workflow that the tag ${tagOf(facts.version)} starts publishes. Try --dry-run.`,
    );
  }
  const { registry } = facts;
  const isGood = areChecksGood(facts);
  if (!isGood && !isDry) return false;
  const folder = inProject('release');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const notes = releaseNotes(facts.changelog, facts.version);
  if (notes !== null) writeFileSync(join(folder, notesFile), notes);
  await buildTools(isDry ? ['helm'] : ['helm', 'cosign']);
  if (isDry) {
    await dryRun(facts, registry ?? exampleRegistry, folder);
    return isGood;
  }
  if (registry === null) throw new StageError('GW_RELEASE_REGISTRY does not say where to publish.');
  await release(facts, registry, folder);
  return true;
}

handleStopSignals();
try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(error instanceof StageError ? error.message : error);
  process.exitCode = 1;
}
