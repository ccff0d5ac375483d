import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EmbeddedPostgres } from '../../../src/dev/embedded-postgres.ts';
import { startEmbeddedPostgres } from '../../../src/dev/embedded-postgres.ts';
import { eventually } from '../measure/eventually.ts';
import { sql } from './fault-postgres.ts';
import { childrenOf, signalProcess } from './signals.ts';
import { copyAsStandby } from './standby-copy.ts';

const database = 'gateway';

export interface ReplicatedPostgres {
  /** Both hosts, the first primary first; it never changes. */
  readonly url: string;
  readonly primaryUrl: string;
  readonly standbyUrl: string;
  /** A crash: the primary and its sessions end at once. */
  killPrimary(): void;
  /** The standby takes over; resolves when it takes writes. */
  promote(): Promise<void>;
  /**
   * After `promote`: in place of the former primary stands a standby of the one that took over, whose commits wait for it
   * once this resolves. From then on the two have each other's part.
   */
  renewStandby(): Promise<void>;
  close(): Promise<void>;
}

interface Member {
  readonly folder: string;
  readonly server: EmbeddedPostgres;
}

/** A primary whose commits wait for its streaming standby, so that nothing that was committed is lost with it. */
export async function startReplicatedPostgres(): Promise<ReplicatedPostgres> {
  const folders = ['first', 'second'].map((name) => mkdtempSync(join(tmpdir(), `gw-${name}-`)));
  const [firstFolder = '', secondFolder = ''] = folders;
  const started: Member[] = [];
  const close = async () => {
    for (const { server } of started.splice(0).reverse()) {
      await server.stop();
      rmSync(server.home, { recursive: true, force: true });
    }
    for (const path of folders) rmSync(path, { recursive: true, force: true });
  };
  const start = async (folder: string, port?: number): Promise<Member> => {
    const given = port === undefined ? {} : { port };
    const server = await startEmbeddedPostgres({ directory: folder, durable: false, ...given });
    const member = { folder, server };
    started.push(member);
    return member;
  };
  try {
    let primary = await start(firstFolder);
    await sql(primary.server.url, `CREATE DATABASE ${database}`);
    await sql(primary.server.url, `ALTER DATABASE ${database} SET synchronous_commit = on`);
    let standby = await startStandby(primary, secondFolder, start);
    const { username, password } = new URL(primary.server.url);
    const hosts = [primary, standby].map(({ server }) => `127.0.0.1:${server.port}`).join(',');
    return {
      url: `postgres://${username}:${password}@${hosts}/${database}?target_session_attrs=read-write`,
      get primaryUrl() {
        return databaseOf(primary);
      },
      get standbyUrl() {
        return databaseOf(standby);
      },
      killPrimary: () => {
        const { pid } = primary.server;
        for (const one of [pid, ...childrenOf(pid)]) signalProcess(one, 'SIGKILL');
      },
      promote: async () => {
        await sql(standby.server.url, 'SELECT pg_promote(true)');
      },
      renewStandby: async () => {
        const former = primary;
        await former.server.stop();
        started.splice(started.indexOf(former), 1);
        rmSync(join(former.server.home, 'data'), { recursive: true, force: true });
        const renewed = await startStandby(standby, former.folder, start, former.server.port);
        [primary, standby] = [standby, renewed];
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function databaseOf({ server }: Member): string {
  return server.url.replace(/postgres$/, database);
}

/** A copy of the primary as its standby; resolves when commits wait for it. */
async function startStandby(
  primary: Member,
  folder: string,
  start: (folder: string, port?: number) => Promise<Member>,
  port?: number,
): Promise<Member> {
  await copyAsStandby(primary.server, folder);
  const standby = await start(folder, port);
  const { url } = primary.server;
  await sql(url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
  await sql(url, 'SELECT pg_reload_conf()');
  await eventually(async () => {
    const [replica] = await sql<{ sync_state: string }>(url, 'SELECT sync_state FROM pg_stat_replication');
    return replica?.sync_state === 'sync' || undefined;
  });
  return standby;
}
