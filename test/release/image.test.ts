/** The image of a release, as it lies in a registry. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { platforms } from '../../scripts/release/image.ts';
import { mustRun } from '../../scripts/release/must-run.ts';
import { findEmulator, findForeignBase, ownArchitecture } from '../harness/cluster/foreign-base.ts';
import { patient } from '../harness/measure/crowding.ts';
import { baseImage } from '../harness/stage/base-image.ts';
import { configOf, imagesOf, LastLayer, manifestOf } from './support/registry-view.ts';

/** What a node pulls, gzipped; of it the stand-in base of the tests is 67 MB; the real one is not weighed here. */
const mostPulledMB = 120;
/** What the Dockerfile adds, gzipped; 13.3 MB when this was written. */
const mostAddedMB = 20;

const release = inject('release');
let images: Record<string, string>;
beforeAll(async () => {
  images = await imagesOf(release.image);
});

const imageFor = (platform: string): string => images[platform] ?? '';
const ownPlatform = `linux/${ownArchitecture}`;

interface SpdxDocument {
  readonly spdxVersion: string;
  readonly documentNamespace: string;
  readonly creationInfo: { readonly created: string };
  readonly packages: readonly { readonly name: string; readonly versionInfo: string }[];
}

test('has the same digest when it is built again', () => {
  const digestOf = (reference: string) => reference.split('@')[1];
  expect(digestOf(release.secondImage)).toBe(digestOf(release.image));
});

test('is an index of one image per processor, on a base of that processor', async () => {
  expect(Object.keys(images)).toEqual(platforms);
  const bases = new Set<string>();
  for (const platform of platforms) {
    const config = await configOf(imageFor(platform));
    expect(`${config['os']}/${config['architecture']}`).toBe(platform);
    bases.add((await manifestOf(imageFor(platform))).layers[0]?.digest ?? '');
  }
  expect(bases.size).toBe(platforms.length);
});

test('has the same addition for every processor, to the byte', async () => {
  const added = await Promise.all(
    platforms.map(async (platform) => (await manifestOf(imageFor(platform))).layers.slice(1)),
  );
  expect(added[0]).not.toEqual([]);
  for (const layers of added) expect(layers).toEqual(added[0]);
});

test.each(platforms)('is small: %s', async (platform) => {
  const { layers } = await manifestOf(imageFor(platform));
  const [base = 0, ...added] = layers.map(({ size }) => size / 1e6);
  const sum = added.reduce((total, size) => total + size, 0);
  process.stdout.write(
    `measured: image for ${platform} of ${base.toFixed(1)} + ${sum.toFixed(1)} MB, gzipped\n`,
  );
  expect(base + sum).toBeLessThan(mostPulledMB);
  expect(sum).toBeLessThan(mostAddedMB);
});

test.each(platforms)('says what it is, from which commit, and is not root: %s', async (platform) => {
  const { config, created } = (await configOf(imageFor(platform))) as {
    config: { User: string; Labels: Record<string, string> };
    created: string;
  };
  const { version, revision, committedAt } = release.facts;
  expect(config.User).toBe('65532:65532');
  expect(config.Labels).toMatchObject({
    'org.opencontainers.image.title': 'Model Gateway',
    'org.opencontainers.image.licenses': 'Apache-2.0',
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.revision': revision,
    'org.opencontainers.image.base.name': baseImage(),
  });
  expect(Date.parse(created)).toBe(committedAt * 1000);
});

describe('what the Dockerfile adds', () => {
  let layer: LastLayer;
  let bill: SpdxDocument;

  beforeAll(async () => {
    layer = await LastLayer.of(imageFor(ownPlatform), release.folder);
    const path = release.files.find((file) => file.endsWith('.spdx.json')) ?? '';
    bill = JSON.parse(readFileSync(path, 'utf8')) as SpdxDocument;
  });

  test('runs on every processor: no program and no library is among it', () => {
    const compiled = layer.names().filter((name) => /\.(node|so|dylib|dll|exe|wasm)(\.\d+)*$/.test(name));
    expect(layer.names().length).toBeGreaterThan(1000);
    expect(compiled).toEqual([]);
  });

  test(
    'runs on the other processor, emulated',
    async () => {
      const folder = join(release.folder, 'added');
      layer.unpack(folder);
      const { debian, node, architecture } = await findForeignBase();
      const emulated = [await findEmulator(), '-L', debian, node] as const;
      const [asked, checked] = [
        await mustRun([...emulated, '-p', 'process.arch']),
        await mustRun([
          ...emulated,
          join(folder, 'app/dist/main.js'),
          ...['check-config', join(folder, 'app/charts/model-gateway/files/tables.yaml')],
        ]),
      ];
      expect(asked.trim()).toBe(architecture.replace('amd64', 'x64'));
      expect(checked).toContain('tables.yaml: OK');
    },
    patient(180_000),
  );

  test('holds nothing that only builds and debuggers read', () => {
    const unread = /\.(map|ts|mts|cts|tsbuildinfo)$|\.tsbuildinfo$/;
    expect(layer.names().filter((name) => unread.test(name))).toEqual([]);
  });

  test('has one folder that the gateway owns, closed to others', () => {
    const own = layer.entries().filter((line) => / 65532\/65532 /.test(line));
    expect(own).toHaveLength(1);
    expect(own[0]).toMatch(/^drwx------ .* var\/lib\/model-gateway\/$/);
  });

  test('is in the bill of software, package by package, and the bill has no other', () => {
    const record = JSON.parse(layer.text('app/node_modules/.package-lock.json')) as {
      packages: Record<string, { name?: string; version: string }>;
    };
    const installed = Object.entries(record.packages).map(
      ([path, { name, version }]) => `${name ?? path.replace(/^.*node_modules\//, '')}@${version}`,
    );
    const billed = bill.packages.map(({ name, versionInfo }) => `${name}@${versionInfo}`);
    const own = `model-gateway@${release.facts.version}`;
    expect(installed.length).toBeGreaterThan(100);
    expect([...new Set(billed)].sort()).toEqual([...new Set([own, ...installed])].sort());
  });

  test('is billed in SPDX, by a document that the commit alone decides', () => {
    const { version, revision, committedAt } = release.facts;
    expect(bill.spdxVersion).toBe('SPDX-2.3');
    expect(bill.documentNamespace).toBe(`https://spdx.org/spdxdocs/model-gateway-${version}-${revision}`);
    expect(Date.parse(bill.creationInfo.created)).toBe(committedAt * 1000);
  });
});
