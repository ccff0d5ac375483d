import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import type { ReleaseFacts } from '../../../scripts/release/facts.ts';
import { readFacts } from '../../../scripts/release/facts.ts';
import { buildArguments, platforms } from '../../../scripts/release/image.ts';
import { mustRun } from '../../../scripts/release/must-run.ts';
import { publish } from '../../../scripts/release/publish.ts';
import { findForeignBase } from '../../harness/cluster/foreign-base.ts';
import { ImageBuilder } from '../../harness/cluster/images.ts';
import { findNodePrograms } from '../../harness/cluster/node-programs.ts';
import { toolPath } from '../../harness/cluster/tools.ts';
import { startRegistry } from '../../harness/servers/registry.ts';

/** A release as the tests find it. */
export interface PublishedRelease {
  readonly facts: ReleaseFacts;
  /** `host:port/folder` of the registry. */
  readonly registry: string;
  /** By digest, which is that of an index. */
  readonly image: string;
  readonly chart: string;
  /** Of the same commit, built once more from nothing. */
  readonly secondImage: string;
  readonly publicKey: string;
  /** What was made on the way: chart archive, bill of software. */
  readonly files: readonly string[];
  /** Room for the tests. */
  readonly folder: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    release: PublishedRelease;
  }
}

/** A base image that stands in for the real one has no digest that anybody could know. */
const noBaseDigest = '';

/**
 * Publishes a release of this commit with the functions of `npm run release`: only builder, registry and key are others
 * than in the workflow.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const folder = join(process.env['TEST_RELEASE_FOLDER'] ?? '', 'release');
  mkdirSync(folder);
  process.env['TUF_ROOT'] = folder; // what cosign fetches of public services
  const facts = readFacts();
  const server = await startRegistry();
  const registry = `${server.host}/team`;
  const builder = new ImageBuilder(folder, await findNodePrograms(folder));
  await builder.buildBases(await findForeignBase());
  const build = async (name: string, reference: string): Promise<string> => {
    const stamp = ['--timestamp', `${facts.committedAt}`];
    await builder.buildIndex(name, platforms, [...stamp, ...buildArguments(facts, noBaseDigest)]);
    return builder.pushIndex(name, reference);
  };
  const signer = await makeSigner(folder);
  const published = await publish(facts, registry, folder, {
    pushImage: (reference) => build('localhost/first', reference),
    signer,
    plainHttp: true,
  });
  const again = `${registry}/again`;
  const secondImage = `${again}@${await build('localhost/second', `${again}:${facts.version}`)}`;
  const publicKey = join(folder, 'cosign.pub');
  project.provide('release', { ...published, facts, registry, secondImage, publicKey, folder });
  return server.close;
}

/** A key, and what keeps cosign from telling public services of it. */
async function makeSigner(folder: string): Promise<string[]> {
  const cosign = toolPath('cosign');
  process.env['COSIGN_PASSWORD'] = '';
  const services = join(folder, 'no-services.json');
  await mustRun([cosign, 'generate-key-pair', '--output-key-prefix', join(folder, 'cosign')]);
  await mustRun([cosign, 'signing-config', 'create', '--out', services]);
  return ['--key', join(folder, 'cosign.key'), '--signing-config', services];
}
