/** docs/install.md, docs/comparison.md and the tables of docs/settings.md and docs/operations.md, typed on this machine. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { blocksIn } from '../harness/clients/page-blocks.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { registerUser } from '../harness/gateway/register.ts';
import { tables } from '../harness/gateway/tables.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { patient } from '../harness/measure/crowding.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { useDatabase, useFolder } from '../harness/servers/use-started.ts';
import { inProject } from '../harness/stage/project.ts';

/** `node` is the one that runs the tests. */
const env = {
  PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
  HOME: process.env['HOME'] ?? '',
};
const folder = useFolder();
const database = useDatabase(undefined, { migrated: false });

/** The block of a page that begins so. */
function blockOf(document: string, language: string, beginning: string): string {
  const found = blocksIn(document, language).find((text) => text.startsWith(beginning));
  return found ?? expect.fail(`${document} has no block that begins with ${beginning}`);
}

/** What is printed; rejects where it fails. */
async function typed(lines: string, cwd: string): Promise<string> {
  return (await promisify(execFile)('bash', ['-euc', lines], { cwd, env })).stdout;
}

test('a gateway that is started from the source as docs/install.md says is ready, and ends when it is told to', async () => {
  const block = blockOf('docs/install.md', 'sh', 'npm ci && npm run build\n');
  const lines = block
    .replace(/^npm ci.*\n/, '')
    .replace('postgres://…', database.url)
    .replace('\nnode ', '\nexec node ');
  expect(lines).not.toContain('…');
  const child = spawn('bash', ['-euc', lines], {
    cwd: inProject(),
    env: { ...env, PORT: '0', GW_ADMIN_PORT: '0', GW_DATA_DIR: folder.path },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  try {
    let adminUrl = '';
    const output = createInterface({ input: child.stdout });
    output.on('line', (line) => {
      if (line.includes('"listening"')) adminUrl = (JSON.parse(line) as { admin_url: string }).admin_url;
    });
    await eventually(async () => {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
      if (adminUrl === '') return undefined;
      const { status } = await httpClient(adminUrl.replace('0.0.0.0', '127.0.0.1')).get('/readyz');
      return status === 200 ? true : undefined;
    });
  } finally {
    child.kill('SIGTERM');
  }
  expect((await ended)[0]).toBe(0);
});

test(
  'the crash test, typed as docs/install.md and docs/comparison.md have it, finds nothing wrong with the gateway',
  async () => {
    const line = blockOf('docs/install.md', 'sh', 'npm run crash-test').trim();
    expect(blockOf('docs/comparison.md', 'sh', 'npm run crash-test').trim()).toBe(line);
    const gateway = await startForTest({ tables: tables({ timeouts: { stream_idle_seconds: 1 } }) });
    const { key } = await registerUser(gateway.url);
    const here = line.replace('http://gateway:8080', gateway.url).replace('gw_…', key);
    // The page's default, a minute of silence, is that of the shipped tables.
    const said = await typed(`${here} --idle-seconds 1`, inProject());
    expect(said).toMatch(/\n[1-9]\d* pass, [1-9]\d* safe, 0 fail\n$/);
  },
  patient(180_000),
);

describe('lines for the tables', () => {
  test.each([
    ['docs/settings.md', 'limits:', 'limits'],
    ['docs/operations.md', 'residency:', 'residency'],
  ])('of %s are accepted by the command that checks them: %s', async (document, beginning, field) => {
    const lines = parse(blockOf(document, 'yaml', beginning)) as Readonly<Record<string, unknown>>;
    const shipped = parse(
      readFileSync(inProject('charts/model-gateway/files/tables.yaml'), 'utf8'),
    ) as object;
    const command = blockOf('docs/settings.md', 'sh', 'node dist/main.js check-config').replace(
      'dist/main.js',
      `"${inProject('dist/main.js')}"`,
    );
    const check = (tables: object) => {
      writeFileSync(join(folder.path, 'tables.yaml'), stringify(tables));
      return typed(command, folder.path);
    };
    expect(Object.keys(lines)).toEqual([field]);
    expect(await check({ ...shipped, ...lines })).not.toBe(await check(shipped));
    await expect(check({ ...shipped, [field]: { other: 1 } })).rejects.toHaveProperty(
      'stdout',
      expect.stringContaining(field),
    );
  });
});
