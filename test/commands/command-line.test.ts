/** What holds for every command: help with an example, named mistakes, exit codes. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageVersion } from '../../src/package-version.ts';
import { sealingKeys } from '../harness/gateway/start-gateway.ts';
import { useDatabase, useFolder } from '../harness/servers/use-started.ts';
import { runCommand, runOnDatabase } from './run-command.ts';

const empty = useDatabase(undefined, { migrated: false });
const folder = useFolder();

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

test('--version prints that of the package', async () => {
  expect(await runCommand(['--version'])).toEqual({ code: 0, stdout: `${packageVersion()}\n`, stderr: '' });
});

test("help of a command below another is that command's own", async () => {
  const { code, stdout, stderr } = await runCommand(['help', 'users', 'limits']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toBe((await runCommand(['users', 'limits', '--help'])).stdout);
});

test.each([
  ['check-config', ['check-config', 'nowhere.yaml']],
  ['reprice', ['reprice', '--tables', 'nowhere.yaml', '--since', '2026-11-01']],
  ['report', ['report', '--from', '2026-11-01', '--key', 'nowhere.pem']],
  ['verify-report', ['verify-report', 'nowhere.ndjson']],
  ['verify-report', ['verify-report', 'package.json', '--public-key', 'nowhere.pem']],
])('a file that is not there has the exit code of what does not exist: %s', async (name, args) => {
  const { code, stderr } = await runCommand(args);
  expect(code).toBe(66);
  expect(stderr).toMatch(new RegExp(`^model-gateway ${name}: .*nowhere`));
});

test.each([
  [['sevre'], "unknown command 'sevre'"],
  [['help', 'sevre'], "unknown command 'sevre'"],
  [['users', 'frob'], "unknown command 'frob'"],
  [['help', 'users', 'frob'], "unknown command 'frob'"],
  [['users', 'help', 'frob'], "unknown command 'frob'"],
  [['--sevre'], "unknown option '--sevre'"],
  [['migrate', '--force'], "unknown option '--force'"],
  [['migrate', 'now'], "too many arguments for 'migrate'"],
  [['check-config'], "missing required argument 'file'"],
  [['wait', 'long'], "'long' is invalid for argument 'seconds'. It must be a number from 0 to 86400."],
  [['demo', '99999'], "'99999' is invalid for argument 'port'"],
  [['demo', '80.5'], "'80.5' is invalid for argument 'port'. It must be a whole number from 0 to 65535."],
  [['demo', '0x50'], "'0x50' is invalid for argument 'port'"],
])('%j is named as a mistake, with exit code 64', async (args, said) => {
  const { code, stdout, stderr } = await runCommand(args);
  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toContain(`model-gateway: `);
  expect(stderr).toContain(said);
  // The mistake is not lost above a page of what would be right.
  expect(stderr).not.toContain('Usage:');
});

const someone = 'ada@example.com';
const since = ['--from', '2026-11-01'];
/** Every command that works on the database. */
const onDatabase: readonly (readonly string[])[] = [
  ['migrate'],
  ['reseal'],
  ['users', 'list'],
  ['users', 'add', someone],
  ['users', 'show', someone],
  ['users', 'disable', someone],
  ['users', 'enable', someone],
  ['users', 'set-residency', someone, 'india'],
  ['users', 'limits', someone, '--streams', '3'],
  ['users', 'new-key', someone],
  ['users', 'revoke-key', someone, '0d5b9a53-2f7c-4a2e-9d43-6f1f6e8a3b11'],
  ['users', 'delete', someone],
  ['spend', ...since],
  ['reprice', '--tables', 'charts/model-gateway/files/tables.yaml', '--since', '2026-11-01'],
  ['export', '--format', 'csv', ...since],
  ['report', ...since],
];

test.each(onDatabase.map((args) => [args.join(' '), args] as const))(
  'a database that is away has an exit code of its own: %s',
  async (name, args) => {
    const evidenceKey = join(folder.path, `${name.replace(/\W/g, '-')}.pem`);
    await runCommand(['evidence-key', evidenceKey]);
    const ended = await runCommand(args, {
      DATABASE_URL: 'postgres://127.0.0.1:1/none',
      GW_SEALING_KEYS: sealingKeys(),
      GW_EVIDENCE_KEY_FILE: evidenceKey,
    });
    expect(ended).toMatchObject({ code: 69, stdout: '' });
    expect(ended.stderr).toMatch(/^model-gateway [a-z -]+: the database is not available, .*ECONNREFUSED/);
  },
);

const refusals = [
  ['a wrong password', { password: 'not-this-one' }, 'password authentication failed for user "'],
  ['a database that is not there', { pathname: '/not_this_one' }, 'database "not_this_one" does not exist'],
] as const;

test.each(refusals.flatMap((refusal) => onDatabase.map((args) => [...refusal, args] as const)))(
  'what the server has against %s is told, and that waiting does not help: %j',
  async (_what, change, said, args) => {
    const url = Object.assign(new URL(empty.url), change);
    const evidenceKey = join(folder.path, `${args.join('-').replace(/\W/g, '-')}.refused.pem`);
    await runCommand(['evidence-key', evidenceKey]);
    const { code, stdout, stderr } = await runCommand(args, {
      DATABASE_URL: url.href,
      GW_SEALING_KEYS: sealingKeys(),
      GW_EVIDENCE_KEY_FILE: evidenceKey,
    });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(`: the database refuses the settings of this command: ${said}`);
  },
);

const withoutDatabase = [
  ...['serve', 'verify-report', 'evidence-key', 'new-key', 'check-config'],
  ...['openapi', 'completion', 'demo', 'wait'],
];

test('every command is in the list of those on the database, or of those without', async () => {
  const named = onDatabase.map(([name = '', other]) => (name === 'users' ? `users ${other}` : name));
  const all = (await explain([])).map(({ path }) => path.join(' '));
  expect([...named, ...withoutDatabase].sort()).toEqual(all.sort());
});

test('a database without the schema is sent to migrate', async () => {
  const { code, stdout, stderr } = await runOnDatabase(empty, ['users', 'list']);
  expect({ code, stdout, stderr }).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'model-gateway users list: the database lacks the schema of this release: run "model-gateway migrate"\n',
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
