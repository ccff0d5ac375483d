/** What SECURITY.md tells whoever installs a release to run, run on one that a key of the tests has signed. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';
import { mustRun } from '../../scripts/release/must-run.ts';
import { exists, readDocument } from '../docs/documents.ts';
import { toolPath, toolsFolder } from '../harness/cluster/tools.ts';

const release = inject('release');

const section = readDocument('SECURITY.md').split('\n## Verifying a release\n')[1]?.split('\n## ')[0] ?? '';
const lines = /^```sh\n([\s\S]*?)^```/m.exec(section)?.[1]?.trim().split('\n') ?? [];
const [who = '', ...commands] = lines;

/** Runs the line with what the page leaves to its reader. */
async function verify(line: string, { key = release.publicKey, ...others } = {} as Record<string, string>) {
  const { image, chart, folder } = release;
  const env = {
    PATH: `${toolsFolder()}:${process.env['PATH']}`,
    HOME: folder,
    ...{ IMAGE: image, CHART: chart, ...others },
  };
  // The workflow's identity comes from public services; here it is a key, and no log of signatures.
  const typed = `WHO=(--key='${key}' --insecure-ignore-tlog)\n${line}`;
  return promisify(execFile)('bash', ['-euc', typed], { env, cwd: folder, maxBuffer: 2 ** 26 });
}

const digestOf = (reference: string) => reference.split('@')[1] ?? '';

test('the page verifies image, bill of software and chart, by the workflow that may sign them', () => {
  expect(commands.map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
    'cosign verify',
    'cosign verify-attestation',
    'cosign verify',
  ]);
  const [, workflow = ''] = /\/(\.github\/workflows\/\w+\.yml)@refs\/tags\/v/.exec(who) ?? [];
  expect(exists(workflow), who).toBe(true);
});

test('each of its commands accepts the release', async () => {
  const [image = '', bill = '', chart = ''] = commands;
  expect((await verify(image)).stdout).toContain(digestOf(release.image));
  expect((await verify(chart)).stdout).toContain(digestOf(release.chart));
  await verify(bill);
  const { payload } = JSON.parse((await verify('cat bill.json')).stdout) as { payload: string };
  const statement = JSON.parse(Buffer.from(payload, 'base64').toString()) as {
    subject: { digest: { sha256: string } }[];
    predicate: { spdxVersion: string; packages: unknown[] };
  };
  expect(`sha256:${statement.subject[0]?.digest.sha256}`).toBe(digestOf(release.image));
  expect(statement.predicate.spdxVersion).toBe('SPDX-2.3');
  expect(statement.predicate.packages.length).toBeGreaterThan(100);
});

test('each of them refuses what somebody else has signed', async () => {
  const prefix = join(release.folder, 'other');
  await mustRun([toolPath('cosign'), 'generate-key-pair', '--output-key-prefix', prefix]);
  for (const line of commands) {
    await expect(verify(line, { key: `${prefix}.pub` }), line).rejects.toThrow(/Command failed/);
  }
});

test('each of them refuses what nobody has signed', async () => {
  const unsigned = release.secondImage;
  for (const line of commands) {
    await expect(verify(line, { IMAGE: unsigned, CHART: unsigned }), line).rejects.toThrow(/Command failed/);
  }
});
