/** docs/troubleshooting.md knows every error code, and names no code and no log line that does not exist. */
import { describe, expect, test } from 'vitest';
import { allErrorCodes } from '../../src/core/error-codes.ts';
import { codeSpans, filesBelow, readDocument } from './documents.ts';

const page = readDocument('docs/troubleshooting.md');
const sources = filesBelow('src', '.ts').map(readDocument).join('\n');

/** The first cells of the tables that begin so. */
function symptoms(header: string): string[] {
  return page
    .split(`\n| ${header} |`)
    .slice(1)
    .flatMap((rest) => {
      const lines = rest.split('\n').slice(2);
      const end = lines.findIndex((line) => !line.startsWith('| '));
      return lines.slice(0, end < 0 ? undefined : end);
    })
    .map((line) => line.split(' | ')[0]?.replace(/^\| /, '') ?? '');
}

test('every error code of the gateway has one row, and no other code has any', () => {
  const named = symptoms('`error.code`').flatMap(codeSpans);
  expect(named.toSorted()).toEqual(allErrorCodes.toSorted());
});

describe('a line of the log or of stderr', () => {
  const started = symptoms('on stderr, in the log or on `/readyz`').flatMap(codeSpans);
  /** Names, numbers and addresses of a row are no lines. */
  const later = symptoms('you see')
    .flatMap(codeSpans)
    .filter((text) => /^[\w;,]+( [\w;,]+){2,}$/.test(text));

  test.each([...started, ...later])('"%s" is one that the gateway writes', (line) => {
    expect(sources).toContain(line);
  });

  test('is named often enough to be of use', () => {
    expect(started.length).toBeGreaterThan(4);
    expect(later.length).toBeGreaterThan(3);
  });
});

test('every runbook that is named is that of an alert', () => {
  const runbooks = readDocument('docs/runbooks.md');
  const named = [...page.matchAll(/\[(Gw\w+)\]\(runbooks\.md#(\w+)\)/g)];
  expect(named.length).toBeGreaterThan(5);
  for (const [, name = '', anchor] of named) {
    expect(runbooks).toContain(`\n## ${name}\n`);
    expect(anchor).toBe(name.toLowerCase());
  }
});
