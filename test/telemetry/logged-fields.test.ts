import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createLogger } from '../../src/telemetry/logger.ts';

const source = join(import.meta.dirname, '../../src');

/** Fields that the code hands to a logger by name, with the file that does. */
function fieldsGiven(): [field: string, file: string][] {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  );
  return files.flatMap((file) => {
    const text = readFileSync(join(source, file), 'utf8');
    const calls = text.matchAll(/\b(?:log|logger)\??\.(?:debug|info|warn|error|fatal)\(\s*\{([^{}]*)\}/g);
    const fields = [...calls].flatMap(([, given = '']) =>
      [...given.matchAll(/(?:^|,)\s*(\w+)\s*(?=[:,]|$)/g)].map(([, name = '']) => name),
    );
    return [...new Set(fields)].map((field): [string, string] => [field, file]);
  });
}

function keeps(field: string): boolean {
  let line = '';
  createLogger('debug', {
    write: (text: string) => {
      line += text;
    },
  }).info({ [field]: 'said' }, 'a line');
  return field in (JSON.parse(line) as object);
}

test('what the code says of an event is in its line', () => {
  const given = fieldsGiven();
  // Else they are no longer found.
  expect(given.length).toBeGreaterThan(20);
  expect(given.filter(([field]) => !keeps(field))).toEqual([]);
});

test('what nobody has named is not', () => {
  expect(['body', 'headers', 'api_key', 'messages', 'email'].filter(keeps)).toEqual([]);
});
