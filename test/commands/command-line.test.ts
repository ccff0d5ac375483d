/** What holds for every command: help with an example, named mistakes, exit codes. */
import { expect, test } from 'vitest';
import { runCommand } from './run-command.ts';

interface Explained {
  readonly path: readonly string[];
  readonly help: string;
}

/** The commands that `--help` of this path lists. */
const listed = (help: string): string[] => {
  const [, lines = ''] = /^Commands:\n((?: {2}.*\n)+)/m.exec(help) ?? [];
  return [...lines.matchAll(/^ {2}(\S+)/gm)].map(([, name = '']) => name).filter((name) => name !== 'help');
};

/** Every command that does something, found as a reader finds it. */
async function explain(path: readonly string[]): Promise<Explained[]> {
  const { code, stdout: help } = await runCommand([...path, '--help']);
  expect({ path, code }).toEqual({ path, code: 0 });
  const names = listed(help);
  if (names.length === 0) return [{ path, help }];
  return (await Promise.all(names.map((name) => explain([...path, name])))).flat();
}

test('a reader at the other end of a pipe gets all that a command writes', async () => {
  const { code, stdout } = await runCommand(['openapi']);
  expect(code).toBe(0);
  // More than a pipe holds: what is left when the command is done is not thrown away with it.
  expect(stdout.length).toBeGreaterThan(100_000);
  expect(JSON.parse(stdout)).toHaveProperty('openapi');
});

test('every command explains itself, with an example of its own', async () => {
  const commands = await explain([]);
  expect(commands.length).toBeGreaterThan(7);
  for (const { path, help } of commands) {
    expect(help).toContain(`Usage: model-gateway ${path.join(' ')}`);
    expect(help.split('\nExample:\n')[1]).toContain('model-gateway');
  }
});

test.each([[['--help']], [['help']], [['-h']]])('%j lists the commands and the exit codes', async (args) => {
  const { code, stdout, stderr } = await runCommand(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(listed(stdout)).toEqual(expect.arrayContaining(['serve', 'migrate', 'check-config']));
  expect(stdout).toContain('Exit codes:');
});

test.each([
  [['sevre'], "unknown command 'sevre'"],
  [['--sevre'], "unknown option '--sevre'"],
  [['migrate', '--force'], "unknown option '--force'"],
  [['migrate', 'now'], "too many arguments for 'migrate'"],
  [['check-config'], "missing required argument 'file'"],
  [['wait', 'long'], "'long' is invalid for argument 'seconds'. It must be a number from 0 to 86400."],
  [['demo', '99999'], "'99999' is invalid for argument 'port'"],
])('%j is named as a mistake, with exit code 64', async (args, said) => {
  const { code, stdout, stderr } = await runCommand(args);
  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toContain(`model-gateway: `);
  expect(stderr).toContain(said);
});

test('a database that is away has an exit code of its own', async () => {
  const { code, stderr } = await runCommand(['migrate'], { DATABASE_URL: 'postgres://127.0.0.1:1/none' });
  expect({ code, stderr }).toEqual({
    code: 69,
    stderr: 'model-gateway migrate: connect ECONNREFUSED 127.0.0.1:1\n',
  });
});

test('a missing setting is named with its command', async () => {
  const { code, stderr } = await runCommand(['reseal']);
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'model-gateway reseal: DATABASE_URL is not set.\n' });
});

test('a new key has the shape of one', async () => {
  expect(await runCommand(['new-key'])).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^gw_[0-9A-Za-z]{49}\n$/),
    stderr: '',
  });
});

test('wait ends by itself', async () => {
  expect(await runCommand(['wait', '0'])).toEqual({ code: 0, stdout: '', stderr: '' });
});
