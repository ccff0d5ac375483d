import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCommand } from './run-command.ts';

const shipped = join(import.meta.dirname, '../../charts/model-gateway/files/tables.yaml');

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'check-config-'));
  path = join(folder, 'tables.yaml');
});
afterEach(() => rm(folder, { recursive: true }));

test('says OK in one line', async () => {
  const { code, stdout } = await runCommand(['check-config', shipped]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/tables\.yaml: OK, \d+ candidates, \d+ prices, \d+ models, hash [0-9a-f]{16}\n$/);
});

test('says it to machines', async () => {
  const { code, stdout } = await runCommand(['check-config', '--json', shipped]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    path: shipped,
    ok: true,
    candidates: expect.any(Number),
    prices: expect.any(Number),
    models: expect.any(Number),
    hash: expect.stringMatching(/^[0-9a-f]{16}$/),
    storage_region: null,
  });
});

test('names where rows are stored, where the operator has said so', async () => {
  const env = { GW_STORAGE_REGION: 'ap-south-1' };
  expect((await runCommand(['check-config', shipped], env)).stdout).toMatch(/, rows stored in ap-south-1\n$/);
  const { stdout } = await runCommand(['check-config', '--json', shipped], env);
  expect(JSON.parse(stdout)).toMatchObject({ storage_region: 'ap-south-1' });
});

test.each<[what: string, env: Record<string, string>]>([
  ['no database', { DATABASE_URL: '' }],
  ['a bad database', { DATABASE_URL: 'mysql://x' }],
  ['a bad Redis', { REDIS_URL: 'x' }],
  ['a bad sealing key', { GW_SEALING_KEYS: 'v1:short' }],
  ['a file of sealing keys that is not there', { GW_SEALING_KEYS_FILE: '/nowhere' }],
  ['a secret given twice', { GW_ADMIN_TOKEN: 'x', GW_ADMIN_TOKEN_FILE: '/nowhere' }],
  ['a bad port', { PORT: 'x' }],
  ['a registration without its token', { GW_REGISTRATION: 'token' }],
  ['networks that are none', { GW_OUTBOUND_ALLOWED_CIDRS: 'x' }],
  ['a bad proxy', { HTTPS_PROXY: 'x', https_proxy: 'y' }],
  ['a misspelt sampler', { OTEL_TRACES_SAMPLER: 'x' }],
])('checks the document where the gateway would refuse its settings: %s', async (_what, env) => {
  const { code, stdout, stderr } = await runCommand(['check-config', shipped], {
    ...env,
    GW_STORAGE_REGION: 'ap-south-1',
  });
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/tables\.yaml: OK, .*, rows stored in ap-south-1\n$/);
});

test('says so where the place of rows cannot be used', async () => {
  const { code, stderr } = await runCommand(['check-config', shipped], { GW_STORAGE_REGION: 'in the south' });
  expect(code).toBe(1);
  expect(stderr).toBe(
    'model-gateway check-config: GW_STORAGE_REGION: must be a name without spaces, at most 128 characters\n',
  );
});

test('names the first problems with their paths', async () => {
  await writeFile(
    path,
    'tiers: {cheap: [], balanced: [{provider: nobody, model: m}], premium: 3}\nlimits: {messages: -1}\n',
  );
  const { code, stdout, stderr } = await runCommand(['check-config', path]);
  expect(code).toBe(1);
  for (const part of ['invalid', 'tiers.cheap', 'tiers.balanced', 'tiers.premium', 'limits.messages']) {
    expect(stdout).toContain(part);
  }
  expect(stderr).toBe(`model-gateway check-config: ${path} is not usable\n`);
});

test('says so when there is no file', async () => {
  const { code, stdout } = await runCommand(['check-config', '--json', path]);
  expect(code).toBe(66);
  expect(JSON.parse(stdout)).toMatchObject({
    path,
    ok: false,
    fault: 'unreadable',
    message: expect.stringContaining('ENOENT'),
  });
});
