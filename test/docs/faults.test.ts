/** docs/faults.md is the scorecard of a run: it lists every test of faults that exists. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { patient } from '../harness/measure/crowding.ts';
import {
  cellsOf,
  faultsPage,
  rowKey,
  sectionsOf,
  suiteSection,
} from '../harness/scorecard/scorecard-page.ts';
import { suites } from '../harness/scorecard/suites.ts';
import { readDocument } from './documents.ts';

const root = join(import.meta.dirname, '../..');
const vitest = join(root, 'node_modules/vitest/vitest.mjs');
const howTo = 'the tests have changed since: run "npm run faults"';
const listLimitMs = 60_000;
/** What a name says only once its test runs: `%s`, `$name`, `${expression}`. */
const placeholder = /%[sdifjoO#$]|\$\{[^}]*\}|\$\w+(?:\.\w+)*/;

const literally = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

/** Finds the row of a test by the fixed parts of its name. */
function patternOf(row: string): RegExp {
  return new RegExp(row.split(placeholder).map(literally).join('.+'));
}

/** The rows that these tests make, by their two first cells, as vitest reads them from the files without a run. */
async function rowsOf(...args: string[]): Promise<string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [vitest, 'list', ...args, '--json'], {
    cwd: root,
    // What steers this run is not meant for that one.
    env: { PATH: process.env['PATH'] },
    maxBuffer: 2 ** 24,
  });
  const tests = JSON.parse(stdout.slice(stdout.indexOf('['))) as { name: string; file: string }[];
  return tests.map(({ name, file }) => {
    const own = name.slice(name.lastIndexOf(' > ') + 1).replace(/^> /, '');
    return rowKey(cellsOf(name, own, readFileSync(file, 'utf8')));
  });
}

test.each([
  ['test/faults', ['test/faults'], 70],
  ['test/kills', ['--mode', 'kills'], 3],
])(
  'every test of %s is a row',
  async (_folder, args, atLeast) => {
    const page = readDocument('docs/faults.md');
    const rows = await rowsOf(...args);
    expect(rows.length).toBeGreaterThanOrEqual(atLeast);
    expect(
      rows.filter((row) => !patternOf(row).test(page)),
      howTo,
    ).toEqual([]);
  },
  patient(listLimitMs),
);

test('npm run faults runs stages that exist', () => {
  const { scripts } = JSON.parse(readDocument('package.json')) as { scripts: Record<string, string> };
  const stages = suites.map(({ stage }) => readDocument(`test/harness/stages/${stage}.ts`));
  expect(stages.length).toBeGreaterThanOrEqual(6);
  const named = suites.flatMap(({ command }) => /npm run ([\w:-]+)/.exec(command)?.[1] ?? []);
  expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
});

test('each part of the page says when, at which commit and on what it was made', () => {
  const made = /^`npm .+` on \d{4}-\d\d-\d\d at commit [0-9a-f]{7,}, on a machine with \d+ cores/m;
  const sections = [...sectionsOf(readDocument('docs/faults.md'))];
  expect(sections.length).toBeGreaterThanOrEqual(2);
  expect(sections.filter(([, section]) => !made.test(section)).map(([title]) => title)).toEqual([]);
});

describe('the page is written', () => {
  const run = { date: '2026-01-31', commit: 'abcdef0', machine: 'a machine with 2 cores' };

  test('with a failure that is seen', () => {
    const rows = [
      { fault: 'a | b', required: 'lives', figure: '1 ms', passed: true },
      { fault: 'c', required: 'dies\nnot', figure: '', passed: false },
    ];
    const page = faultsPage([suiteSection(run, { title: 'One', command: 'npm run one', rows })]);
    expect(page).toContain('| a \\| b | lives | 1 ms | yes |');
    expect(page).toContain('| c | dies not |  | **no** |');
    expect(page).toContain('1 of 2 passed');
  });

  test('suite by suite: what another run made stays as it is', () => {
    const one = suiteSection(run, { title: 'One', command: 'npm run one', rows: [] });
    const two = suiteSection(run, { title: 'Two, too', command: 'npm run two', rows: [] });
    const sections = sectionsOf(faultsPage([one, two]));
    expect([...sections]).toEqual([
      ['One', one],
      ['Two, too', two],
    ]);
  });

  test('with the suites around a test as its fault, else with the subject of its file', () => {
    expect(cellsOf('SIGKILL > at night > costs nothing', 'costs nothing', '')).toEqual({
      fault: 'SIGKILL, at night',
      required: 'costs nothing',
    });
    const source = '/** Redis fails: nobody\n * feels it. */\nimport';
    expect(cellsOf('is felt by nobody', 'is felt by nobody', source).fault).toBe('Redis fails');
  });
});
