/** What is made from other files is up to date: schema of the tables, table of values, k8s/base/tables.yaml, renderings. */
import { expect, test } from 'vitest';
import { readFile } from '../chart/chart-files.ts';
import { sourcesDigest } from '../harness/cluster/render.ts';
import { generatedFiles } from '../harness/generated/generated-files.ts';
import { staleFiles } from '../harness/generated/made-files.ts';

test('npm run generate would change nothing', () => {
  expect(staleFiles(generatedFiles()).map(({ path }) => path)).toEqual([]);
});

test('the renderings were made from the present templates, values and cases: npm run render:chart', () => {
  expect(sourcesDigest()).toBe(readFile('test/chart/rendered/sources.sha256').trim());
});
