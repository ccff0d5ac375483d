/** An output that is not whole is never taken for one; a reader that has enough is no failure. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { useFolder } from '../harness/servers/use-started.ts';
import { runLine } from './run-command.ts';

const folder = useFolder();
const commands = join(import.meta.dirname, '../../src/commands');

/** The text of the system behind it has a name, and nothing else stands there. */
const told = (name: string) => new RegExp(`^model-gateway: the output is not whole: ${name}: .*\n$`);

test
  .skipIf(!existsSync('/dev/full'))
  .each([['new-key'], ['openapi'], ['completion bash'], ['--help'], ['help users'], ['--version']])(
  'a full disk fails, and is told: %s',
  async (args) => {
    const { code, stderr } = await runLine(`gateway ${args} > /dev/full`);
    expect(stderr).toMatch(told('ENOSPC'));
    expect(code).toBe(1);
  },
);

describe('a file', () => {
  test('that may not grow holds what there is room for, and the command fails', async () => {
    const path = join(folder.path, 'limited');
    const { code, stderr } = await runLine(`trap '' XFSZ; ulimit -f 64; gateway openapi > '${path}'`);
    expect(stderr).toMatch(told('EFBIG'));
    expect(code).toBe(1);
    expect(statSync(path).size).toBe(64 * 1024);
  });

  test('holds what a pipe gets, behind what was in it', async () => {
    const path = join(folder.path, 'whole');
    const { code, stdout } = await runLine(
      `echo before > '${path}'; gateway openapi >> '${path}' && gateway openapi`,
    );
    expect(code).toBe(0);
    expect(readFileSync(path, 'utf8')).toBe(`before\n${stdout}`);
  });
});

test.each(['openapi | head -1', '--help | true'])('a reader that leaves is no failure: %s', async (line) => {
  const { stdout, stderr } = await runLine(`gateway ${line}; echo "code \${PIPESTATUS[0]}"`);
  expect(stdout).toMatch(/(^|\n)code 0\n$/);
  expect(stderr).toBe('');
});

test('no command writes past what looks after this', () => {
  /** A server goes on without a reader; the program listens for what goes wrong. */
  const others = new Set(['output.ts', 'program.ts', 'demo.ts']);
  const own = readdirSync(commands).filter((name) => !others.has(name));
  expect(own.length).toBeGreaterThan(20);
  const past = own.filter((name) =>
    /process\.stdout|console\./.test(readFileSync(join(commands, name), 'utf8')),
  );
  expect(past).toEqual([]);
});
