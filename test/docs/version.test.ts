/** The version stands in package.json; all else that names it follows, and the changelog leads up to it. */
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { packageVersion as shownVersion } from '../../src/package-version.ts';
import { packageVersion } from '../harness/stage/version.ts';
import { documents, filesBelow, readDocument } from './documents.ts';

describe('one version', () => {
  test('is that of the lock file, the program and the chart', () => {
    const lock = JSON.parse(readDocument('package-lock.json')) as {
      version: string;
      packages: Record<string, { version: string }>;
    };
    const chart = parse(readDocument('charts/model-gateway/Chart.yaml')) as Record<string, string>;
    expect([
      lock.version,
      lock.packages['']?.version,
      chart['version'],
      chart['appVersion'],
      shownVersion(),
    ]).toEqual(Array.from({ length: 5 }, () => packageVersion));
  });

  test('is that of every image of ours that a manifest or a document names', () => {
    const manifests = [...filesBelow('k8s', '.yaml'), ...filesBelow('charts', '.yaml'), 'k8s/README.md'];
    const named = [...manifests, ...documents()].flatMap((path) =>
      [...readDocument(path).matchAll(/\bmodel-gateway:(\d[\w.+-]*\w)/g)].map(([, version]) => ({
        path,
        version,
      })),
    );
    expect(named.length).toBeGreaterThan(8);
    expect(named.filter(({ version }) => version !== packageVersion)).toEqual([]);
  });
});

describe('CHANGELOG.md is in the form of Keep a Changelog', () => {
  const headings = (level: number) =>
    [...readDocument('CHANGELOG.md').matchAll(new RegExp(`^#{${level}} (.+)$`, 'gm'))].map(
      ([, text]) => text,
    );

  test('with releases that have a date, the newest first, after what is not released', () => {
    const [first, ...releases] = headings(2);
    expect(first).toBe('[Unreleased]');
    for (const release of releases)
      expect(release).toMatch(/^\[\d+\.\d+\.\d+(-[\w.]+)?\] - \d{4}-\d\d-\d\d$/);
    const dates = releases.map((release) => release?.split(' - ')[1] ?? '');
    expect(dates).toEqual([...dates].sort().reverse());
  });

  test('and kinds of changes that it knows', () => {
    const kinds = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'];
    expect(headings(3).length).toBeGreaterThan(0);
    expect(headings(3).filter((kind) => !kinds.includes(kind ?? ''))).toEqual([]);
  });
});
