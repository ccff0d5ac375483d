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

test('the list of migrations in ARCHITECTURE.md has a word on each, in their order', () => {
  const [list = ''] = /^The migrations are below[\s\S]*?\n\n/m.exec(readDocument('ARCHITECTURE.md')) ?? [];
  const numbers = filesBelow('src/adapters/postgres/migrations', '.sql')
    .map((path) => /\d{4}/.exec(path)?.[0])
    .sort();
  expect([...list.matchAll(/\((\d{4})\)/g)].map(([, number]) => number)).toEqual(numbers);
});

test('ARCHITECTURE.md names all who use a due-timer.ts of their own', () => {
  const [said = ''] = /`due-timer\.ts` is[\s\S]*?\. /.exec(readDocument('ARCHITECTURE.md')) ?? [];
  const users = filesBelow('src', '.ts').filter((path) => readDocument(path).includes("/due-timer.ts'"));
  const named = codeSpans(said).filter((text) => text !== 'due-timer.ts');
  expect(named.map((path) => `src/${path}`).sort()).toEqual(users.sort());
});

describe('the code map', () => {
  const text = readDocument('ARCHITECTURE.md');
  const entries = new Set(filesBelow('src', '.ts').map((path) => path.split('/')[1] ?? ''));

  test.each([...entries])('has a word on src/%s', (entry) => {
    expect(text).toContain(entry.endsWith('.ts') ? `\`${entry}\`` : `\`${entry}/`);
  });
});
