/** Every link between the documents leads somewhere, and every cited decision exists. */
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { anchorOf } from '../harness/site/anchor.ts';
import { documents, exists, filesBelow, prose, readDocument } from './documents.ts';

function anchorsOf(text: string): string[] {
  return [...prose(text).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));
}

function linksOf(document: string): string[] {
  return [...prose(readDocument(document)).matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => match[1] ?? '')
    .filter((target) => !/^[a-z]+:/.test(target));
}

function leadsNowhere(document: string, target: string): boolean {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? document : join(dirname(document), path);
  return !exists(file) || (anchor !== undefined && !anchorsOf(readDocument(file)).includes(anchor));
}

test.each(documents())('every link of %s leads somewhere', (document) => {
  expect(linksOf(document).filter((target) => leadsNowhere(document, target))).toEqual([]);
});

describe('decisions', () => {
  const names = filesBelow('docs/decisions', '.md')
    .map((path) => path.replace('docs/decisions/', ''))
    .filter((name) => name !== 'README.md')
    .sort();

  test('are numbered one by one, headed by their number, and listed', () => {
    const index = readDocument('docs/decisions/README.md');
    for (const [position, name] of names.entries()) {
      const number = String(position + 1).padStart(4, '0');
      expect(name.slice(0, 5)).toBe(`${number}-`);
      expect(readDocument(`docs/decisions/${name}`)).toMatch(new RegExp(`^# ${number} `));
      expect(index).toContain(`| ${number} | [`);
      expect(index).toContain(`](${name})`);
    }
  });

  test.each(names)('%s has context, decision, consequences and what was rejected', (name) => {
    const headings = readDocument(`docs/decisions/${name}`).match(/^## .+$/gm);
    expect(headings).toEqual(['## Context', '## Decision', '## Consequences', '## Rejected']);
  });

  test('that code and tests cite are there', () => {
    const numbers = names.map((name) => name.slice(0, 4));
    for (const path of [...filesBelow('src', '.ts'), ...filesBelow('test', '.ts')]) {
      const cited = readDocument(path).matchAll(/docs\/decisions\/(\d+)/g);
      for (const [, number] of cited) expect(numbers, path).toContain(number);
    }
  });
});
