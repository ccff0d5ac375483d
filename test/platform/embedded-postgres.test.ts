import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { EmbeddedPostgres } from '../../src/dev/embedded-postgres.ts';
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts';
import { isPostmaster, postmasterPath } from '../../src/dev/postmaster.ts';
import { startPostgres } from '../harness/servers/postgres.ts';
import { runNode } from './child.ts';

const asRoot = process.getuid?.() === 0;
/** Alone each takes about a second; initdb is slow on a busy machine. */
vi.setConfig({ testTimeout: 60_000 });

let folder: string;
let servers: EmbeddedPostgres[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'model-gateway-test-'));
  chmodSync(folder, 0o755);
  servers = [];
});

afterEach(async () => {
  for (const server of servers) {
    await server.stop();
    rmSync(server.home, { recursive: true, force: true });
  }
  rmSync(folder, { recursive: true, force: true });
});

async function start(directory = join(folder, 'postgres')): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ directory, durable: false });
  servers.push(server);
  return server;
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

describe('the embedded Postgres', () => {
  test('keeps its data, and wants its password, across a stop and a start', async () => {
    const first = await start();
    await query(first.url, 'CREATE TABLE kept AS SELECT 1 AS value');
    await first.stop();
    expect(isPostmaster(first.pid, join(first.home, 'data'))).toBe(false);

    const second = await start();
    expect(second.adopted).toBe(false);
    expect(await query(second.url, 'SELECT value FROM kept')).toEqual([{ value: 1 }]);
    const wrong = second.url.replace(/:[^:@]+@/, ':guess@');
    await expect(query(wrong, 'SELECT 1')).rejects.toThrow('password authentication failed');
  });

  test('adopts the server that a killed process left running', async () => {
    const directory = join(folder, 'postgres');
    const holder = runNode(['test/platform/hold-postgres.ts', directory]);
    const left = JSON.parse(await holder.printed('\n')) as { pid: number; port: number };
    holder.process.kill('SIGKILL');
    await holder.ended();

    const server = await start(directory);
    expect(server).toMatchObject({ adopted: true, pid: left.pid, port: left.port });
    expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await server.stop();
    expect(isPostmaster(left.pid, join(server.home, 'data'))).toBe(false);
  });

  test('recovers after a crash although its old pid now belongs to another program', async () => {
    const server = await start();
    const data = join(server.home, 'data');
    process.kill(server.pid, 'SIGKILL');
    await expect.poll(() => isPostmaster(server.pid, data)).toBe(false);
    const lines = readFileSync(postmasterPath(data), 'utf8').split('\n');
    writeFileSync(postmasterPath(data), [process.pid, ...lines.slice(1)].join('\n'));

    const again = await start();
    expect(again.adopted).toBe(false);
    expect(await query(again.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  test.each([0, 1, 5, 20, 60])(
    'leaves no server behind when its start is given up after %i ms',
    async (ms) => {
      const { home, stop } = await start();
      await stop();
      const given = ms === 0 ? AbortSignal.abort() : AbortSignal.timeout(ms);
      const options = { directory: join(folder, 'postgres'), durable: false };
      const late = await startEmbeddedPostgres(options, given).catch((error: Error) => error);
      // Where it was there sooner than the signal.
      if (!(late instanceof Error)) await late.stop();
      const commands = execFileSync('ps', ['-A', '-o', 'args='], { encoding: 'utf8' });
      expect(commands.split('\n').filter((line) => line.includes(join(home, 'data')))).toEqual([]);
    },
  );

  test('says in one line why the server does not start, and leaves none behind', async () => {
    const server = await start();
    await server.stop();
    writeFileSync(join(server.home, 'data', 'PG_VERSION'), '11\n');
    const failure = await start().catch((error: Error) => error);
    expect(failure).toMatchObject({ name: 'StartError' });
    expect((failure as Error).message).toMatch(/^Postgres did not start: .*incompatible.*$/);
    expect(existsSync(postmasterPath(join(server.home, 'data')))).toBe(false);
  });

  test('says in one line that the folder cannot be used', async () => {
    writeFileSync(join(folder, 'postgres'), 'a file');
    await expect(start()).rejects.toThrow(/^The data directory .* cannot be used \(E[A-Z]+\)/);
  });

  // Only root has the trouble of a server that must be somebody else.
  if (asRoot) {
    test('moves to the temporary folder when root keeps the data below a private folder', async () => {
      const hidden = join(folder, 'private');
      mkdirSync(hidden, { mode: 0o700 });
      const server = await start(join(hidden, 'postgres'));
      expect(server.home.startsWith(hidden)).toBe(false);
      expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
      rmSync(join(server.home, '..'), { recursive: true, force: true });
    });
  }
});

describe('a Postgres for fault tests', () => {
  test('freezes, goes on, crashes and comes back under the same address', async () => {
    const server = await startPostgres();
    try {
      server.stopSignal();
      const frozen = query(server.url, 'SELECT 1 AS one');
      server.continueSignal();
      expect(await frozen).toEqual([{ one: 1 }]);
      await server.kill();
      await expect(query(server.url, 'SELECT 1')).rejects.toThrow('ECONNREFUSED');
      await server.start();
      expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    } finally {
      await server.close();
    }
  });
});
