/** The chart of a release, as Helm gets it from a registry. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, inject, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { packageChart } from '../../scripts/release/chart.ts';
import { helm, must } from '../cluster/cluster.ts';
import type { KubernetesObject } from '../harness/cluster/kubernetes-object.ts';

const release = inject('release');
const { version } = release.facts;
const address = `oci://${release.registry}/charts/model-gateway`;
const source = [address, '--version', version, '--plain-http'];
const needed = ['--set', 'database.existingSecret=a,sealing.existingSecret=b'];

let pulled: string;

const digestOf = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');
const newFolder = () => mkdtempSync(join(release.folder, 'chart-'));

beforeAll(async () => {
  const folder = newFolder();
  await must(helm(['pull', ...source, '--destination', folder]));
  const [file = ''] = readdirSync(folder);
  pulled = join(folder, file);
});

test('names the version as its own and as that of the gateway', async () => {
  expect(parse(await must(helm(['show', 'chart', pulled])))).toMatchObject({ version, appVersion: version });
});

test('installs the image of the release, by its digest', async () => {
  const text = await must(helm(['template', 'gateway', ...source, ...needed]));
  const objects = parseAllDocuments(text, { version: '1.1' }).map((one) => one.toJSON() as KubernetesObject);
  const deployment = objects.find(({ kind }) => kind === 'Deployment');
  const images = [...JSON.stringify(deployment).matchAll(/"image":"([^"]+)"/g)].map(([, image]) => image);
  expect(images).toEqual([release.image]);
});

test('says which image that is to who looks at the chart alone', async () => {
  const { annotations } = parse(await must(helm(['show', 'chart', pulled])));
  expect(parse(annotations['artifacthub.io/images'])).toEqual([
    { name: 'model-gateway', image: release.image },
  ]);
});

test('is the same archive when it is packaged again', async () => {
  const [repository = '', digest = ''] = release.image.split('@');
  const again = await packageChart(release.facts, { repository, digest }, newFolder());
  expect(digestOf(again)).toBe(digestOf(pulled));
});

test('refuses values that its schema does not know', async () => {
  const { code, err } = await helm(['template', 'gateway', ...source, ...needed, '--set', 'image.tagg=1']);
  expect(code).not.toBe(0);
  expect(err).toContain('tagg');
});
