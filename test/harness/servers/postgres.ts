import { createHash, randomBytes } from 'node:crypto';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { EmbeddedPostgres } from '../../../src/dev/embedded-postgres.ts';
import { startEmbeddedPostgres } from '../../../src/dev/embedded-postgres.ts';
import { isPostmaster } from '../../../src/dev/postmaster.ts';
import { childrenOf, signalProcess } from './signals.ts';

/** Only one test process at a time makes the template. */
const TEMPLATE_LOCK = 7_203_115;
const POLL_MS = 5;

export interface TestDatabase {
  readonly url: string;
  /** Cuts the connections that are left. */
  drop(): Promise<void>;
}

export interface PostgresProcess {
  /** Superuser, database `postgres`; the same before and after a restart. */
  readonly url: string;
  /** Of the running server; a restart changes it. */
  readonly pid: number;
  /** Freezes the server and its sessions: sockets stay open, nothing answers. */
  stopSignal(): void;
  continueSignal(): void;
  /** A crash: the server and its sessions end at once. */
  kill(): Promise<void>;
  /** An immediate shutdown, as an operator in a hurry does it: sessions are cut, nothing is written any more. */
  quit(): Promise<void>;
  /** After `kill` or `quit`: the same port, the same data. */
  start(): Promise<void>;
  /** Stops the server and removes its data. */
  close(): Promise<void>;
}

/** The superuser's address of the run's shared server. */
export function adminDatabaseUrl(): string {
  const url = process.env['TEST_DATABASE_URL'];
  if (url === undefined) throw new Error('TEST_DATABASE_URL is not set: run the tests through "npm test".');
  return url;
}

/** A new database on the shared server, with the schema unless `migrated` is false. */
export async function createDatabase(options: { migrated?: boolean } = {}): Promise<TestDatabase> {
  const name = `gw_test_${randomBytes(8).toString('hex')}`;
  await asAdmin(async (admin) => {
    const template = options.migrated === false ? 'template0' : await ensureTemplate(admin);
    await admin.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
  });
  return {
    url: databaseUrl(name),
    drop: () => asAdmin((admin) => admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)),
  };
}

/** An own server, for tests that stop, freeze or crash it. */
export async function startPostgres(options: { port?: number } = {}): Promise<PostgresProcess> {
  const directory = mkdtempSync(join(tmpdir(), 'model-gateway-test-'));
  let server: EmbeddedPostgres = await startEmbeddedPostgres({ directory, durable: false, ...options });
  const { port, home } = server;
  return {
    url: server.url,
    get pid() {
      return server.pid;
    },
    stopSignal() {
      for (const pid of [server.pid, ...childrenOf(server.pid)]) signalProcess(pid, 'SIGSTOP');
    },
    continueSignal() {
      for (const pid of [...childrenOf(server.pid), server.pid]) signalProcess(pid, 'SIGCONT');
    },
    async kill() {
      for (const pid of [server.pid, ...childrenOf(server.pid)]) signalProcess(pid, 'SIGKILL');
      while (isPostmaster(server.pid, join(home, 'data'))) await delay(POLL_MS);
    },
    async quit() {
      signalProcess(server.pid, 'SIGQUIT');
      while (isPostmaster(server.pid, join(home, 'data'))) await delay(POLL_MS);
    },
    async start() {
      server = await startEmbeddedPostgres({ directory, durable: false, port });
    },
    async close() {
      for (const pid of [...childrenOf(server.pid), server.pid]) signalProcess(pid, 'SIGCONT');
      await server.stop();
      rmSync(home, { recursive: true, force: true });
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The name of a migrated database; it carries a digest of the migrations, so an old one is never taken. */
async function ensureTemplate(admin: pg.Client): Promise<string> {
  const digest = createHash('sha256');
  for (const path of globSync('src/**/*.sql').sort()) digest.update(readFileSync(path));
  const name = `gw_template_${digest.digest('hex').slice(0, 12)}`;
  if (await exists(admin, name)) return name;
  await admin.query('SELECT pg_advisory_lock($1)', [TEMPLATE_LOCK]);
  try {
    if (await exists(admin, name)) return name;
    const unfinished = `${name}_unfinished`;
    await admin.query(`DROP DATABASE IF EXISTS ${unfinished} WITH (FORCE)`);
    await admin.query(`CREATE DATABASE ${unfinished} TEMPLATE template0`);
    const { migrate } = await import('../../../src/adapters/postgres/migrate.ts');
    await migrate(databaseUrl(unfinished));
    await admin.query(`ALTER DATABASE ${unfinished} RENAME TO ${name}`);
  } finally {
    await admin.query('SELECT pg_advisory_unlock($1)', [TEMPLATE_LOCK]);
  }
  return name;
}

async function exists(admin: pg.Client, name: string): Promise<boolean> {
  const found = await admin.query('SELECT FROM pg_database WHERE datname = $1', [name]);
  return found.rowCount === 1;
}

async function asAdmin<Result>(work: (admin: pg.Client) => Promise<Result>): Promise<void> {
  const admin = new pg.Client({ connectionString: adminDatabaseUrl() });
  await admin.connect();
  try {
    await work(admin);
  } finally {
    await admin.end();
  }
}

function databaseUrl(name: string): string {
  const url = new URL(adminDatabaseUrl());
  url.pathname = `/${name}`;
  return url.href;
}
