/**
 * A synchronous standby is lost: commits wait in the server, for good, and whoever leaves them leaves a session behind.
 * A name that no standby has is the same to the server.
 */
import { chmodSync, chownSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPool, inTransaction, withDatabase } from '../../../src/adapters/postgres/pool.ts';
import { StoreAway } from '../../../src/core/store-away.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { certificateAuthority } from '../../harness/servers/certificates.ts';
import { sql } from '../../harness/servers/fault-postgres.ts';
import { startPostgres } from '../../harness/servers/postgres.ts';
import { useFolder, useServer } from '../../harness/servers/use-started.ts';

const poolSize = 3;
const rounds = 4;
const patienceMs = 300;

const server = useServer(startPostgres);
const folder = useFolder();
const rootPath = () => join(folder.path, 'ca.crt');

async function useTls(): Promise<void> {
  const authority = certificateAuthority();
  const [shown] = await sql<{ data_directory: string }>(server.url, 'SHOW data_directory');
  const directory = shown?.data_directory ?? '';
  const { cert, key } = authority.issue(['localhost']);
  const { uid, gid } = statSync(directory);
  for (const [name, text] of Object.entries({ 'server.crt': cert, 'server.key': key })) {
    writeFileSync(join(directory, name), text);
    chownSync(join(directory, name), uid, gid);
    chmodSync(join(directory, name), 0o600);
  }
  writeFileSync(rootPath(), authority.root);
  await sql(server.url, 'ALTER SYSTEM SET ssl = on');
}

beforeAll(async () => {
  await sql(server.url, 'CREATE TABLE kept (id integer)');
  await sql(server.url, 'ALTER DATABASE postgres SET synchronous_commit = on');
  await useTls();
  await sql(server.url, "ALTER SYSTEM SET synchronous_standby_names = 'gone'");
  await sql(server.url, 'SELECT pg_reload_conf()');
  await eventually(async () => {
    const [shown] = await sql<{ ssl: string }>(server.url, 'SHOW ssl');
    return shown?.ssl === 'on' || undefined;
  });
});

afterAll(async () => {
  await sql(server.url, "ALTER SYSTEM SET synchronous_standby_names = ''");
  await sql(server.url, 'SELECT pg_reload_conf()');
});

const insert = 'INSERT INTO kept VALUES (1)';
const tls = () => `sslmode=verify-full&sslrootcert=${rootPath()}`;

describe.each<[string, () => string]>([
  ['without TLS', () => 'sslmode=disable'],
  ['with TLS', tls],
  ['with TLS from the first byte', () => `${tls()}&sslnegotiation=direct`],
])('%s', (_connection, parameters) => {
  test.each<[string, boolean, (pool: pg.Pool) => Promise<unknown>]>([
    ['a statement alone', false, (pool) => pool.query(insert)],
    ['a transaction', false, (pool) => inTransaction(pool, (client) => client.query(insert))],
    ['a pool behind a pooler', true, (pool) => pool.query(insert)],
  ])(
    '%s: no more sessions than the pool has connections, and none is told that it is safe',
    async (_work, pooled, write) => {
      const url = `${server.url.replace('127.0.0.1', 'localhost')}?${parameters()}`;
      const pool = createPool(url, poolSize, { patienceMs, pooled });
      for (let round = 0; round < rounds; round += 1) {
        const writes = Array.from({ length: poolSize }, () => withDatabase(() => write(pool)));
        for (const outcome of await Promise.allSettled(writes))
          expect(outcome).toEqual({ status: 'rejected', reason: expect.any(StoreAway) });
      }
      await expect.poll(sessions).toBeLessThanOrEqual(poolSize);
      await pool.end();
    },
  );
});

test('what was refused may be there all the same', async () => {
  const [counted] = await sql<{ rows: number }>(server.url, 'SELECT count(*)::integer AS rows FROM kept');
  expect(counted?.rows).toBeGreaterThan(0);
});

async function sessions(): Promise<number> {
  const [counted] = await sql<{ open: number }>(
    server.url,
    "SELECT count(*)::integer AS open FROM pg_stat_activity WHERE application_name = 'model-gateway'",
  );
  return counted?.open ?? 0;
}
