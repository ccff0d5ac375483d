/** docs/settings.md and docs/commands.md say what the code says. What `npm run generate` makes is in generated.test.ts. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fileVariants } from '../../src/environment.ts';
import { patient } from '../harness/measure/crowding.ts';
import { readDocument, tableRows } from './documents.ts';

const unquoted = (text: string): string => text.replace(/^['`]|['`]$/g, '');

test('the settings that may come from files are named', () => {
  const sentence =
    /Each of ([\s\S]*?)can be read from a file/.exec(readDocument('docs/settings.md'))?.[1] ?? '';
  const documented = [...sentence.matchAll(/`([A-Z_]+)`/g)].map((match) => match[1] ?? '');
  expect(documented.sort()).toEqual([...fileVariants].sort());
  expect(documented.length).toBeGreaterThan(0);
});

describe('the commands', () => {
  const page = readDocument('docs/commands.md');
  const main = join(import.meta.dirname, '../../src/main.ts');
  const help = execFileSync(process.execPath, [main, '--help'], {
    encoding: 'utf8',
    timeout: patient(10_000),
  });
  const section = (title: string): string[][] => {
    const [, lines = ''] = new RegExp(`^${title}:\\n((?: {2}.*\\n?)+)`, 'm').exec(help) ?? [];
    return [...lines.matchAll(/^ {2}(\S+(?: \S+)*) {2,}(.+)$/gm)].map(([, term = '', text = '']) => [
      term,
      text,
    ]);
  };

  test('are those of the binary, in its words', () => {
    const commands = section('Commands').filter(([term]) => term !== 'help [command]');
    const rows = tableRows(page, 'command of `node dist/main.js`', 'does');
    expect(rows.map(([name = '']) => unquoted(name))).toEqual(commands.map(([term]) => term));
    for (const [index, [, meaning = '']] of rows.entries()) expect(meaning).toContain(commands[index]?.[1]);
  });

  test('end with the codes of the table', () => {
    expect(tableRows(page, 'exit code', 'when')).toEqual(section('Exit codes'));
  });
});
