/** ARCHITECTURE.md, CONTRIBUTING.md and SECURITY.md name only files that exist. */
import { describe, expect, test } from 'vitest';
import { codeSpans, exists, filesBelow, foldersOf, readDocument, tableRows } from './documents.ts';

/** Files and folders: something with a slash, or a TypeScript file. No patterns, addresses or placeholders. */
function isPath(text: string): boolean {
  return (
    (/^[\w.-]+(\/[\w.-]+)+\/?$/.test(text) || /^[\w-]+(\/|\.ts)$/.test(text)) && !/^(gw|v1)\//.test(text)
  );
}

/** Made while building or running, and the worked example of CONTRIBUTING.md. */
const exempt = /^(dist|release)\/|^\.\/data\/|acme/;

function namedPaths(document: string): string[] {
  return codeSpans(readDocument(document)).filter((text) => isPath(text) && !exempt.test(text));
}

test.each([
  ['ARCHITECTURE.md', 70],
  ['CONTRIBUTING.md', 25],
  ['SECURITY.md', 0],
])('%s names existing files only', (document, atLeast) => {
  const named = namedPaths(document);
  expect(named.length).toBeGreaterThanOrEqual(atLeast);
  expect(named.filter((path) => !exists(path) && !exists(`src/${path}`))).toEqual([]);
});

test('CONTRIBUTING.md has a row for every folder of tests', () => {
  const text = readDocument('CONTRIBUTING.md');
  const named = tableRows(text, 'folder', 'what', 'needs').flatMap(([folders = '']) => codeSpans(folders));
  const folders = foldersOf('test').map((name) => `test/${name}`);
  expect(named.sort()).toEqual(folders.sort());
});

describe('the code map', () => {
  const text = readDocument('ARCHITECTURE.md');
  const entries = new Set(filesBelow('src', '.ts').map((path) => path.split('/')[1] ?? ''));

  test.each([...entries])('has a word on src/%s', (entry) => {
    expect(text).toContain(entry.endsWith('.ts') ? `\`${entry}\`` : `\`${entry}/`);
  });
});
