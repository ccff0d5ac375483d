import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EmbeddedPostgres } from '../../../src/dev/embedded-postgres.ts';
import { startEmbeddedPostgres } from '../../../src/dev/embedded-postgres.ts';
import { choosePlace } from '../../../src/dev/postgres-binaries.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { sql } from '../../harness/servers/fault-postgres.ts';
import { childrenOf, signalProcess } from '../../harness/servers/signals.ts';

const database = 'gateway';

export interface ReplicatedPostgres {
  /** Both hosts, the primary first. */
  readonly url: string;
  readonly primaryUrl: string;
  readonly standbyUrl: string;
  /** A crash: the primary and its sessions end at once. */
  killPrimary(): void;
  /** The standby takes over; resolves when it takes writes. */
  promote(): Promise<void>;
  close(): Promise<void>;
}

/** A primary whose commits wait for its streaming standby, so that nothing that was committed is lost with it. */
export async function startReplicatedPostgres(): Promise<ReplicatedPostgres> {
  const folders = ['primary', 'standby'].map((name) => mkdtempSync(join(tmpdir(), `gw-${name}-`)));
  const [primaryFolder = '', standbyFolder = ''] = folders;
  const running: EmbeddedPostgres[] = [];
  const start = async (directory: string, port?: number) => {
    const server = await startEmbeddedPostgres({
      directory,
      durable: false,
      ...(port === undefined ? {} : { port }),
    });
    running.push(server);
    return server;
  };
  const homes: string[] = [];
  const close = async () => {
    for (const server of running.splice(0).reverse()) await server.stop();
    for (const path of [...folders, ...homes]) rmSync(path, { recursive: true, force: true });
  };
  const of = ({ url }: EmbeddedPostgres) => url.replace(/postgres$/, database);
  try {
    const made = await start(primaryFolder);
    await sql(made.url, `CREATE DATABASE ${database}`);
    await sql(made.url, `ALTER DATABASE ${database} SET synchronous_commit = on`);
    await made.stop();
    running.pop();

    const standbyHome = choosePlace(standbyFolder).home;
    homes.push(made.home, standbyHome);
    execFileSync('cp', ['-a', join(made.home, 'password'), join(standbyHome, 'password')]);
    const data = join(standbyHome, 'data');
    execFileSync('cp', ['-a', join(made.home, 'data'), data]);
    writeFileSync(join(data, 'standby.signal'), '');
    const { username, password } = new URL(made.url);
    appendFileSync(
      join(data, 'postgresql.auto.conf'),
      `primary_conninfo = 'host=127.0.0.1 port=${made.port} user=${username} password=${password}'\n`,
    );
    const primary = await start(primaryFolder, made.port);
    const standby = await start(standbyFolder);
    await sql(primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    await sql(primary.url, 'SELECT pg_reload_conf()');
    await eventually(async () => {
      const [replica] = await sql<{ sync_state: string }>(
        primary.url,
        'SELECT sync_state FROM pg_stat_replication',
      );
      return replica?.sync_state === 'sync' || undefined;
    });
    return {
      url: `postgres://${username}:${password}@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/${database}?target_session_attrs=read-write`,
      primaryUrl: of(primary),
      standbyUrl: of(standby),
      killPrimary: () => {
        for (const pid of [primary.pid, ...childrenOf(primary.pid)]) signalProcess(pid, 'SIGKILL');
      },
      promote: async () => {
        await sql(standby.url, 'SELECT pg_promote(true)');
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
