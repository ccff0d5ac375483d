import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { freePort } from '../../../src/dev/free-port.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { sql } from '../../harness/servers/fault-postgres.ts';
import { startServerProcess, unprivileged } from '../../harness/servers/server-process.ts';

const password = 'secret';

export interface DebianPostgres {
  /** Superuser, of the database of that name. */
  url(database: string): string;
  /** What a shell needs to find this server's own tools. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Debian's Postgres with its tools, which are as old as it is: the embedded one comes without any. */
export async function startDebianPostgres(): Promise<DebianPostgres> {
  const unpacked = process.env['TEST_DEBIAN_POSTGRES'];
  if (unpacked === undefined) throw new Error('Run "npm run test:stores".');
  const folder = mkdtempSync(join(tmpdir(), 'gw-debian-postgres-'));
  chmodSync(folder, 0o777);
  // Its programs look each other up as the user they run as, whom root's folders are closed to.
  for (const part of ['usr/lib/postgresql/15/bin', 'usr/lib/postgresql/15/lib', 'usr/share/postgresql/15'])
    cpSync(join(unpacked, part), join(folder, part), {
      recursive: true,
      filter: (path) => !path.endsWith('/bitcode'),
    });
  const bin = join(folder, 'usr/lib/postgresql/15/bin');
  const env = {
    PATH: [bin, process.env['PATH']].join(delimiter),
    LD_LIBRARY_PATH: process.env['TEST_STORES_LIBRARIES'] ?? '',
  };
  const close = () => rmSync(folder, { recursive: true, force: true });
  try {
    const passwordFile = join(folder, 'password');
    writeFileSync(passwordFile, password, { mode: 0o644 });
    const [program = '', ...args] = [
      ...unprivileged,
      ...[join(bin, 'initdb'), '-D', join(folder, 'data'), '-U', 'postgres', `--pwfile=${passwordFile}`],
      ...['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--no-sync'],
    ];
    execFileSync(program, args, { env, cwd: '/', stdio: 'pipe' });
    const port = await freePort();
    const settings = ['fsync=off', 'listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`];
    const server = await startServerProcess(
      join(bin, 'postgres'),
      ['-D', join(folder, 'data'), '-p', String(port), ...settings.flatMap((one) => ['-c', one])],
      port,
      { refusesRoot: true },
    );
    const url = (database: string) => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
    // It takes connections before it answers on them.
    await eventually(() => sql(url('postgres'), 'SELECT 1').catch(() => undefined));
    return {
      url,
      env,
      close: async () => {
        await server.close();
        close();
      },
    };
  } catch (error) {
    close();
    throw error;
  }
}
