/** README.md says what the code says: settings, commands. What `npm run generate` makes is in `test/chart`. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { environmentSchema, fileVariants } from '../../src/settings.ts';
import { readDocument, tableRows } from './documents.ts';

const readme = readDocument('README.md');

const unquoted = (text: string): string => text.replace(/^['`]|['`]$/g, '');

/** A default as a reader sees it; a dash for none. */
function shownDefault(field: { safeParse(value: unknown): { data?: unknown } }): string {
  const value = field.safeParse(undefined).data;
  return value === undefined || String(value) === '' ? '–' : String(value);
}

/** Name and default of every setting, in the order of the schema. */
function settingsOfSource(): [string, string][] {
  return Object.entries(environmentSchema.shape).map(([name, field]) => [name, shownDefault(field)]);
}

describe('the settings', () => {
  const rows = tableRows(readme, 'setting', 'default', 'meaning');

  test('are those of the schema, with its defaults, in its order', () => {
    const documented = rows.map(([name = '', value = '']) => [unquoted(name), unquoted(value)]);
    expect(documented).toEqual(settingsOfSource());
    expect(documented.length).toBeGreaterThan(30);
  });

  test('each have a meaning', () => {
    for (const [name, , meaning] of rows) expect(meaning, name).not.toBe('');
  });

  test('that may come from files are named', () => {
    const names = [...fileVariants];
    const sentence = /Each of ([\s\S]*?)can be read from a file/.exec(readme)?.[1] ?? '';
    const documented = [...sentence.matchAll(/`([A-Z_]+)`/g)].map((match) => match[1] ?? '');
    expect(documented.sort()).toEqual(names.sort());
    expect(names.length).toBeGreaterThan(0);
  });
});

describe('the commands', () => {
  const main = join(import.meta.dirname, '../../src/main.ts');
  const help = execFileSync(process.execPath, [main, '--help'], { encoding: 'utf8', timeout: 10_000 });
  const section = (title: string): string[][] => {
    const [, lines = ''] = new RegExp(`^${title}:\\n((?: {2}.*\\n?)+)`, 'm').exec(help) ?? [];
    return [...lines.matchAll(/^ {2}(\S+(?: \S+)*) {2,}(.+)$/gm)].map(([, term = '', text = '']) => [
      term,
      text,
    ]);
  };

  test('are those of the binary, in its words', () => {
    const commands = section('Commands').filter(([term]) => term !== 'help [command]');
    const rows = tableRows(readme, 'command of `node dist/main.js`', 'does');
    expect(rows.map(([name = '']) => unquoted(name))).toEqual(commands.map(([term]) => term));
    for (const [index, [, meaning = '']] of rows.entries()) expect(meaning).toContain(commands[index]?.[1]);
  });

  test('end with the codes of the table', () => {
    expect(tableRows(readme, 'exit code', 'when')).toEqual(section('Exit codes'));
  });
});
