import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../src/dev/free-port.ts';
import { startServerProcess } from '../../harness/servers/server-process.ts';

export interface PgBouncer {
  /** `url` by way of the pooler. */
  through(url: string): string;
  close(): Promise<void>;
}

/**
 * PgBouncer in transaction mode before the server of `url`: clients as many as come, and `serverConnections` to the
 * server for each database and user.
 */
export async function startPgBouncer(url: string, serverConnections: number): Promise<PgBouncer> {
  const program = process.env['TEST_PGBOUNCER'];
  if (program === undefined) throw new Error('TEST_PGBOUNCER is not set: npm run test:stores sets it');
  const server = new URL(url);
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'gw-pgbouncer-'));
  const users = join(folder, 'users.txt');
  const settings = join(folder, 'pgbouncer.ini');
  writeFileSync(users, `"${server.username}" "${decodeURIComponent(server.password)}"\n`);
  writeFileSync(
    settings,
    `[databases]
* = host=${server.hostname} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${serverConnections}
max_client_conn = 500
`,
  );
  // Read by a process that is nobody.
  chmodSync(folder, 0o755);
  const running = await startServerProcess(program, [settings], port, { refusesRoot: true });
  return {
    through: (direct) => {
      const led = new URL(direct);
      led.port = String(port);
      return led.href;
    },
    close: async () => {
      await running.close();
      rmSync(folder, { recursive: true });
    },
  };
}
