/** The scanner finds known vulnerabilities in the lock file and in the bill of a release, and there are none. */
import { mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { toolPath } from '../harness/cluster/tools.ts';
import { patient } from '../harness/measure/crowding.ts';
import { runQuietly } from '../harness/stage/children.ts';
import { inProject } from '../harness/stage/project.ts';
import { writeDatabase } from './support/advisory-database.ts';

/** The public database, from which the scanner takes what it knows of npm's packages. */
const database = 'https://osv-vulnerabilities.storage.googleapis.com/npm/all.zip';
/** A hundred megabytes, at times. */
const DOWNLOAD_MS = 300_000;

const release = inject('release');
const bill = release.files.find((file) => file.endsWith('.spdx.json')) ?? '';
const scanned = [inProject('package-lock.json'), bill];

interface Report {
  readonly results: readonly {
    readonly source: { readonly path: string };
    readonly packages: readonly {
      readonly package: { readonly name: string };
      readonly vulnerabilities: readonly { readonly id: string }[];
    }[];
  }[];
}

/** Scans with the database below this folder; resolves with a line of each finding. Throws where it has none to scan with. */
async function scan(folder: string, ...args: readonly string[]): Promise<string[]> {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'report.json');
  const files = scanned.flatMap((file) => ['--lockfile', file]);
  const { code, output } = await runQuietly(
    toolPath('osv-scanner'),
    ['scan', 'source', ...args, ...files, '--format', 'json', '--output-file', path],
    { env: { ...process.env, OSV_SCANNER_LOCAL_DB_CACHE_DIRECTORY: folder } },
  );
  // 1: something was found.
  if (code !== 0 && code !== 1) throw new Error(output);
  const { results } = JSON.parse(readFileSync(path, 'utf8')) as Report;
  return results.flatMap(({ source, packages }) =>
    packages.flatMap(({ package: { name }, vulnerabilities }) =>
      vulnerabilities.map(({ id }) => `${basename(source.path)}: ${name} ${id}`),
    ),
  );
}

test('an advisory of a package that is shipped is found in both, and told once each', async () => {
  const folder = join(release.folder, 'advisory-made-up');
  writeDatabase(folder, 'GW-MADE-UP-1', 'fastify');
  const expected = scanned.map((path) => `${basename(path)}: fastify GW-MADE-UP-1`);
  expect((await scan(folder, '--offline')).sort()).toEqual(expected.sort());
});

test('without a database it fails, and does not call all well', async () => {
  await expect(scan(join(release.folder, 'no-advisories'), '--offline')).rejects.toThrow(
    'no offline version of the OSV database is available',
  );
});

test(
  'no advisory of the public database is about what is shipped',
  async ({ skip }) => {
    const isNear = await fetch(database, { method: 'HEAD' }).then(
      () => true,
      () => false,
    );
    if (!isNear) skip('the public database of vulnerabilities cannot be reached from this machine');
    const folder = join(release.folder, 'advisories');
    expect(await scan(folder, '--offline-vulnerabilities', '--download-offline-databases')).toEqual([]);
  },
  patient(DOWNLOAD_MS),
);
