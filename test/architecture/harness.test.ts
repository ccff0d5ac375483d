import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';

/** What runs the tests, and what the tests share, is one typed code base below test/harness: tests and scripts use it. */

const root = join(import.meta.dirname, '../..');

function filesBelow(folder: string, ending: RegExp): string[] {
  const all = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  return all.filter((path) => ending.test(path)).map((path) => join(folder, path));
}

function importsOf(path: string): string[] {
  const text = readFileSync(join(root, path), 'utf8');
  const found = [...text.matchAll(/(?:^|\s)(?:from|import)\s*\(?\s*'(\.[^']+)'/g)];
  return found.map(([, target = '']) => relative(root, join(root, dirname(path), target)));
}

test('the harness imports no test and no script', () => {
  const known = /^(test\/harness|src)\//;
  const strange = filesBelow('test/harness', /\.ts$/).flatMap((path) =>
    importsOf(path)
      .filter((target) => !known.test(target) || target.endsWith('.test.ts'))
      .map((target) => `${path} imports ${target}`),
  );
  expect(strange).toEqual([]);
});

test('every file that holds tests says so by its name', () => {
  const silent = filesBelow('test', /\.ts$/)
    .filter((path) => !/\.(test|bench)\.ts$/.test(path))
    .filter((path) => /^(test|describe)(\.\w+)*\(/m.test(readFileSync(join(root, path), 'utf8')));
  expect(silent).toEqual([]);
});

test('what runs before a newer Node is found is all that is not TypeScript', () => {
  const untyped = filesBelow('test', /\.m?js$/).filter(
    (path) => !/fixtures\/|clients-matrix\/drivers\//.test(path),
  );
  expect(untyped).toEqual([]);
  expect(
    filesBelow('scripts', /\.(mjs|js|ts)$/)
      .filter((path) => !/^scripts\/(crash-test|release)\//.test(path))
      .sort(),
  ).toEqual([
    'scripts/copy-assets.mjs',
    'scripts/crash-test.mjs',
    ...['alone', 'children', 'extents', 'install', 'node-binary', 'npm', 'progress', 'project', 'stop'].map(
      (name) => `scripts/lib/${name}.mjs`,
    ),
    'scripts/release.mjs',
    'scripts/stage.mjs',
    'scripts/start.mjs',
  ]);
});
