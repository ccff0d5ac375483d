import pg from 'pg';
import type { PostgresProcess, TestDatabase } from './postgres.ts';
import { startPostgres } from './postgres.ts';

const name = 'gateway';

export interface CrashablePostgres extends PostgresProcess {
  /** An empty database of this server, for a gateway to migrate. */
  readonly database: TestDatabase;
  /** Undoes `stopSignal`, `kill` and `quit`, if need be. */
  restore(): Promise<void>;
}

/**
 * An own server whose commits survive `kill`. Test servers run without synchronous commits, so a crash would
 * lose what had been promised, and the tests would blame the gateway for it.
 */
export async function startCrashablePostgres(): Promise<CrashablePostgres> {
  const server = await startPostgres();
  const admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  await admin.query(`ALTER DATABASE ${name} SET synchronous_commit = on`);
  await admin.end();
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  const database = { url: url.href, drop: () => Promise.resolve() };
  let killed = false;
  const start = async () => {
    await server.start();
    killed = false;
  };
  return {
    url: server.url,
    database,
    get pid() {
      return server.pid;
    },
    stopSignal: () => server.stopSignal(),
    continueSignal: () => server.continueSignal(),
    async kill() {
      killed = true;
      await server.kill();
    },
    async quit() {
      killed = true;
      await server.quit();
    },
    start,
    async restore() {
      if (killed) await start();
      else server.continueSignal();
    },
    close: () => server.close(),
  };
}

/** Runs one statement on a connection of its own. */
export async function sql<Row extends pg.QueryResultRow>(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}
