/** What a real bash and a real zsh complete, once they have loaded what the command prints. */
import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { patient } from '../harness/measure/crowding.ts';
import { unpackDebianPackages } from '../harness/stage/debian-packages.ts';
import { hasProgram } from '../harness/stage/programs.ts';
import { runCommand } from './run-command.ts';

const run = promisify(execFile);
/** Against hanging only: packages may have to come first. */
const fetchLimitMs = 120_000;

/** What a shell offers for a command line that ends where the cursor is. */
type Complete = (line: string) => Promise<string[]>;

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '');

async function bash(): Promise<Complete> {
  const { stdout: script } = await runCommand(['completion', 'bash']);
  const code = [
    script,
    `COMP_LINE="$1" COMP_POINT=\${#1} COMP_WORDS=(model-gateway)`,
    '_model_gateway',
    `for reply in "\${COMPREPLY[@]}"; do echo "$reply"; done`,
  ].join('\n');
  return async (line) => linesOf((await run('bash', ['--norc', '-uc', code, 'bash', line])).stdout);
}

/** The installed one, or that of the Debian package where it lies. */
async function findZsh(): Promise<string> {
  if (hasProgram('zsh')) return 'zsh';
  const folder = await unpackDebianPackages('zsh', ['zsh', 'zsh-common']);
  const found = ['bin/zsh', 'usr/bin/zsh'].map((path) => join(folder, path)).find((path) => existsSync(path));
  return found ?? 'zsh';
}

/** Zsh itself reads the script; what it would show is printed instead. */
async function zsh(): Promise<Complete> {
  const program = await findZsh();
  const { stdout: script } = await runCommand(['completion', 'zsh']);
  const code = [
    'compdef() { :; }; _files() { :; }',
    `_describe() { local one; for one in "\${(@P)2}"; do [[ "$one" == "$typed"* ]] && print -r -- "\${one%%:*}"; done; true; }`,
    script,
    `words=("\${(@s: :)1}") CURRENT=\${#words}`,
    '_model_gateway',
  ].join('\n');
  return async (line) => linesOf((await run(program, ['-fc', code, 'zsh', line])).stdout);
}

test(
  'the scripts have no line that their shells do not understand',
  async () => {
    const [{ stdout: forBash }, { stdout: forZsh }, program] = await Promise.all([
      runCommand(['completion', 'bash']),
      runCommand(['completion', 'zsh']),
      findZsh(),
    ]);
    expect(spawnSync('bash', ['-n'], { input: forBash, encoding: 'utf8' })).toMatchObject({
      status: 0,
      stderr: '',
    });
    expect(spawnSync(program, ['-fn'], { input: forZsh, encoding: 'utf8' })).toMatchObject({
      status: 0,
      stderr: '',
    });
  },
  patient(fetchLimitMs),
);

describe.each([
  ['bash', bash],
  ['zsh', zsh],
])('%s', (_name, start) => {
  let complete: Complete;
  beforeAll(async () => {
    complete = await start();
  }, patient(fetchLimitMs));

  test('offers every command that the help lists', async () => {
    const { stdout } = await runCommand(['--help']);
    const [, lines = ''] = /^Commands:\n((?: {2}.*\n)+)/m.exec(stdout) ?? [];
    const commands = [...lines.matchAll(/^ {2}(\S+)/gm)].map(([, name]) => name);
    expect(commands.length).toBeGreaterThan(10);
    expect((await complete('model-gateway ')).sort()).toEqual(commands.sort());
  });

  test.each<[line: string, offered: readonly string[]]>([
    ['model-gateway us', ['users']],
    ['model-gateway users d', ['disable', 'delete']],
    ['model-gateway help sp', ['spend']],
    ['model-gateway users help sh', ['show']],
    ['model-gateway export --f', ['--format', '--from']],
    ['model-gateway export --format ', ['focus', 'csv', 'ndjson']],
    ['model-gateway export --format n', ['ndjson']],
    ['model-gateway export --format csv --t', ['--to']],
    ['model-gateway completion ', ['bash', 'zsh']],
    ['model-gateway users set-residency ada@example.com ', ['india', 'none']],
    ['model-gateway users set-residency --json ada@example.com i', ['india']],
    ['model-gateway users set-residency ', []],
    ['model-gateway users new-key --label list ada@example.com --e', ['--expires']],
    ['model-gateway users new-key ada@example.com --label ', []],
    ['model-gateway users show --', ['--json', '--help']],
    ['model-gateway reprice --tables ', []],
  ])('%j: %j', async (line, offered) => {
    expect(await complete(line)).toEqual(offered);
  });
});
