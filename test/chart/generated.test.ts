/** What is made from other files is up to date: schema of the tables, table of values, k8s/base/tables.yaml, renderings. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { chartFolder, listFiles, readFile, root } from './chart-files.ts';

test('npm run generate:chart would change nothing', () => {
  execFileSync(process.execPath, [join(root, 'scripts/generate-chart.mjs'), '--check'], { timeout: 60_000 });
});

test('the renderings were made from the present templates, values and cases: npm run render:chart', () => {
  const hash = createHash('sha256');
  const files = ['Chart.yaml', 'values.yaml', 'values-ha.yaml'].map((name) => `${chartFolder}/${name}`);
  files.push(...listFiles(`${chartFolder}/templates`, /\.\w+$/), ...listFiles('test/chart/cases', /\.\w+$/));
  for (const path of files) hash.update(path).update('\0').update(readFile(path)).update('\0');
  expect(hash.digest('hex')).toBe(readFile('test/chart/rendered/sources.sha256').trim());
});
