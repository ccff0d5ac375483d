import { chmodSync, chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { eventually } from '../../harness/measure/eventually.ts';
import type { CertificateAuthority } from '../../harness/servers/certificates.ts';
import { certificateAuthority } from '../../harness/servers/certificates.ts';
import { sql } from '../../harness/servers/fault-postgres.ts';
import { startPostgres } from '../../harness/servers/postgres.ts';

const role = 'gateway';
const database = 'gateway';

export interface TlsPostgres {
  /** Of the gateway's user, by the name that the certificate holds; `query` is what follows the question mark. */
  url(query: string): string;
  /** Superuser, database of the gateway. */
  readonly adminUrl: string;
  /** Below it lie `ca.crt`, `client.crt`, `client.key`, and `stranger.*` of another authority. */
  readonly folder: string;
  close(): Promise<void>;
}

/** A Postgres that lets its one user in with TLS only, and only with a client certificate in that user's name. */
export async function startTlsPostgres(): Promise<TlsPostgres> {
  const server = await startPostgres();
  const folder = mkdtempSync(join(tmpdir(), 'gw-tls-postgres-'));
  const [ours, theirs] = [certificateAuthority(), certificateAuthority()];
  writeClientFiles(folder, 'client', 'ca.crt', ours);
  writeClientFiles(folder, 'stranger', 'stranger-ca.crt', theirs);
  const admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  try {
    const { rows } = await admin.query<{ data_directory: string }>('SHOW data_directory');
    const directory = rows[0]?.data_directory ?? '';
    const { cert, key } = ours.issue(['localhost']);
    const { uid, gid } = statSync(directory);
    for (const [name, text] of Object.entries({
      'server.crt': cert,
      'server.key': key,
      'root.crt': ours.root,
      'pg_hba.conf': `hostssl all ${role} all scram-sha-256 clientcert=verify-ca\nhost all postgres all scram-sha-256\n`,
    })) {
      writeFileSync(join(directory, name), text);
      chownSync(join(directory, name), uid, gid);
      chmodSync(join(directory, name), 0o600);
    }
    await admin.query("ALTER SYSTEM SET ssl_ca_file = 'root.crt'");
    await admin.query('ALTER SYSTEM SET ssl = on');
    await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
    await admin.query(`CREATE DATABASE ${database} OWNER ${role}`);
    await admin.query('SELECT pg_reload_conf()');
    await eventually(async () => {
      const [shown] = await sql<{ ssl: string }>(server.url, 'SHOW ssl');
      return shown?.ssl === 'on' || undefined;
    });
  } finally {
    await admin.end();
  }
  const port = new URL(server.url).port;
  return {
    url: (query) => `postgres://${role}:secret@localhost:${port}/${database}?${query}`,
    adminUrl: server.url.replace(/postgres$/, database),
    folder,
    close: async () => {
      await server.close();
      rmSync(folder, { recursive: true });
    },
  };
}

function writeClientFiles(folder: string, name: string, rootName: string, from: CertificateAuthority): void {
  const { cert, key } = from.issue([role]);
  writeFileSync(join(folder, rootName), from.root);
  writeFileSync(join(folder, `${name}.crt`), cert);
  writeFileSync(join(folder, `${name}.key`), key, { mode: 0o600 });
}
