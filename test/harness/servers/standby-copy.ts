import type { Dirent } from 'node:fs';
import { appendFileSync, chownSync, statSync, writeFileSync } from 'node:fs';
import { copyFile, mkdir, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import pg from 'pg';
import { choosePlace } from '../../../src/dev/postgres-binaries.ts';

const slot = 'standby';
/** What a copy must not have, or fetches anew: `pg_wal` comes through the slot. */
const leftOut = /^(postmaster\.(pid|opts)$|(pg_wal|pg_replslot|pg_stat_tmp|pg_dynshmem|pg_notify)\/)/;
/** Postgres refuses a folder that others can enter. */
const privateMode = 0o700;

export interface CopiedServer {
  /** Superuser, database `postgres`. */
  readonly url: string;
  readonly port: number;
  readonly home: string;
}

/**
 * Copies a running primary into `folder`, which must have no cluster, so that a server started there is its streaming
 * standby. The embedded Postgres comes without pg_basebackup.
 */
export async function copyAsStandby(primary: CopiedServer, folder: string): Promise<void> {
  const { home } = choosePlace(folder);
  const [from, to] = [join(primary.home, 'data'), join(home, 'data')];
  const session = new pg.Client({ connectionString: primary.url });
  await session.connect();
  try {
    // It keeps what is written from now on until the standby has fetched it.
    await session.query('SELECT pg_create_physical_replication_slot($1, true)', [slot]);
    await session.query('SELECT pg_backup_start($1, true)', [slot]);
    await copyFolder(from, to);
    const { rows } = await session.query<{ labelfile: string }>(
      'SELECT labelfile FROM pg_backup_stop(false)',
    );
    writeFileSync(join(to, 'backup_label'), rows[0]?.labelfile ?? '');
  } finally {
    await session.end();
  }
  writeFileSync(join(to, 'standby.signal'), '');
  const { username, password } = new URL(primary.url);
  const lines = [
    `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=${username} password=${password}'`,
    `primary_slot_name = '${slot}'`,
    // Once promoted, it commits alone until a standby of its own is there.
    "synchronous_standby_names = ''",
  ];
  appendFileSync(join(to, 'postgresql.auto.conf'), `${lines.join('\n')}\n`);
  await copyFile(join(primary.home, 'password'), join(home, 'password'));
  const { uid, gid } = statSync(from);
  for (const path of [
    join(home, 'password'),
    ...['backup_label', 'standby.signal'].map((one) => join(to, one)),
  ])
    chownSync(path, uid, gid);
}

/** Without what is left out, and with the owners that the files have: without blocking, since vendors answer here. */
async function copyFolder(from: string, to: string): Promise<void> {
  const { uid, gid } = statSync(from);
  const entries: Dirent[] = await readdir(from, { recursive: true, withFileTypes: true });
  const make = async (path: string) => {
    await mkdir(path, { recursive: true, mode: privateMode });
    chownSync(path, uid, gid);
  };
  await make(to);
  const depth = ({ parentPath }: Dirent) => parentPath.length;
  for (const entry of entries.sort((a, b) => depth(a) - depth(b))) {
    const path = relative(from, join(entry.parentPath, entry.name));
    if (leftOut.test(path)) continue;
    if (entry.isDirectory()) await make(join(to, path));
    else await copyIfThere(join(from, path), join(to, path), { uid, gid });
  }
}

/** Postgres removes files meanwhile; what it did to them is in the log that the standby plays. */
async function copyIfThere(from: string, to: string, owner: { uid: number; gid: number }): Promise<void> {
  try {
    await copyFile(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return;
  }
  chownSync(to, owner.uid, owner.gid);
}
