import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { freePort } from '../../src/dev/free-port.ts';
import { readPostmasterFile } from '../../src/dev/postmaster.ts';
import type { Child } from './child.ts';
import { runNode } from './child.ts';

/** Alone it takes seconds; on a machine busy with other tests every program start is slow. */
const PATIENCE_MS = 90_000;
vi.setConfig({ testTimeout: PATIENCE_MS });

let folder: string;
let children: Child[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'model-gateway-test-'));
  chmodSync(folder, 0o755);
  children = [];
});

afterEach(async () => {
  for (const child of children) {
    child.process.kill('SIGTERM');
    await child.ended();
  }
  rmSync(folder, { recursive: true, force: true });
});

async function start(settings: NodeJS.ProcessEnv = {}): Promise<Child> {
  const child = runNode(['src/dev.ts'], {
    GW_HOST: '127.0.0.1',
    GW_ADMIN_HOST: '127.0.0.1',
    PORT: String(await freePort()),
    GW_ADMIN_PORT: String(await freePort()),
    GW_DATA_DIR: folder,
    GW_LOG_LEVEL: 'silent',
    GW_DRAIN_SECONDS: '1',
    ...settings,
  });
  children.push(child);
  return child;
}

/** Does what the printed curl line does. */
async function pasteCurl(banner: string): Promise<string> {
  const line = banner.split('\n').find((text) => text.startsWith('curl -N '));
  const [, url = '', ...quoted] =
    /^curl -N (\S+) -H '(.*)' -H '(.*)' -H '(.*)' -d '(.*)'$/.exec(line ?? '') ?? [];
  const headers = quoted.slice(0, 3).map((header) => header.split(': ') as [string, string]);
  const response = await fetch(url, { method: 'POST', headers, body: quoted[3] ?? null });
  return await response.text();
}

function postgresRuns(): boolean {
  return readPostmasterFile(join(folder, 'postgres', 'data')) !== null;
}

test('the printed line streams an answer, a killed start is taken over, a stopped one leaves nothing', async () => {
  const first = await start();
  const banner = await first.printed('Ctrl-C stops everything');
  const answer = await pasteCurl(banner);
  expect(answer).toContain('"gateway":{');
  expect(answer.trimEnd().endsWith('data: [DONE]')).toBe(true);
  for (const secret of ['demo.json', 'sealing.key']) {
    expect(statSync(join(folder, secret)).mode & 0o777).toBe(0o600);
  }

  first.process.kill('SIGKILL');
  await first.ended();
  expect(postgresRuns()).toBe(true);

  const second = await start();
  const secondBanner = await second.printed('Ctrl-C stops everything');
  const serviceKey = /Bearer (\S+)'/;
  expect(serviceKey.exec(secondBanner)?.[1]).toBe(serviceKey.exec(banner)?.[1]);

  const rival = await start();
  const refused = await rival.ended();
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/^Another instance already runs on .*\n$/);
  expect(await pasteCurl(secondBanner)).toContain('data: [DONE]');

  second.process.kill('SIGTERM');
  expect(await second.ended()).toMatchObject({ code: 0, stderr: '' });
  expect(postgresRuns()).toBe(false);
});

test('a stop signal during the start leaves nothing behind', async () => {
  const child = await start();
  const cluster = join(folder, 'postgres');
  await expect.poll(() => existsSync(cluster), { timeout: PATIENCE_MS }).toBe(true);
  child.process.kill('SIGINT');
  expect(await child.ended()).toMatchObject({ code: 0, stdout: '', stderr: '' });
  expect(postgresRuns()).toBe(false);
});

/** In the environment of somebody who works with Postgres otherwise. */
const ofAnotherDatabase = {
  PGSSLMODE: 'verify-full',
  PGOPTIONS: '-c no_such_setting=1',
  PGHOST: 'db.invalid',
};

test('a second Ctrl-C ends it at once, but not the copies of the first that launchers hand on', async () => {
  const adminPort = await freePort();
  const child = await start({
    ...ofAnotherDatabase,
    GW_ADMIN_PORT: String(adminPort),
    GW_DRAIN_DELAY_SECONDS: '60',
  });
  await child.printed('Ctrl-C stops everything');
  for (let copy = 0; copy < 3; copy += 1) child.process.kill('SIGINT');
  const ready = async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).status;
  await expect.poll(ready, { timeout: PATIENCE_MS }).toBe(503);
  const again = setInterval(() => child.process.kill('SIGINT'), 100);
  expect(await child.ended()).toMatchObject({ code: 130, stderr: '' });
  clearInterval(again);
  await expect.poll(postgresRuns, { timeout: PATIENCE_MS }).toBe(false);
});

test('a taken port is one line that names it', async () => {
  const owner = createServer();
  const port = await new Promise<number>((done) => {
    owner.listen({ host: '127.0.0.1', port: 0 }, () => done((owner.address() as { port: number }).port));
  });
  try {
    const child = await start({ PORT: String(port) });
    const { code, stdout, stderr } = await child.ended();
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(`Port ${port} on 127.0.0.1 is in use: stop its owner, or set PORT to another one.\n`);
    expect(postgresRuns()).toBe(false);
  } finally {
    owner.close();
  }
});

test('a data directory that is none is one line that names it', async () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const { code, stderr } = await (await start({ GW_DATA_DIR: file })).ended();
  expect(code).toBe(1);
  expect(stderr).toMatch(/^The data directory .*file cannot be used \(EEXIST\): .*\n$/);
});

test('a setting that cannot be used is one line that names it', async () => {
  const { code, stderr } = await (await start({ PORT: 'eighty' })).ended();
  expect(code).toBe(1);
  expect(stderr).toMatch(/^PORT: .*\n$/);
});
