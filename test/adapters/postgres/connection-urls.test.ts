/**
 * A database URL means the same for every connection. Against a real Postgres with TLS: for each form of the URL the
 * driver of the queries and the driver that listens both connect, both in the same way, or both refuse.
 */

import { createPrivateKey } from 'node:crypto';
import { chmodSync, chownSync, copyFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listenForKeyChanges } from '../../../src/adapters/postgres/key-changes.ts';
import { createPool } from '../../../src/adapters/postgres/pool.ts';
import { keyChangesChannel } from '../../../src/adapters/postgres/provider-keys.ts';
import { createSystemClock } from '../../../src/adapters/system/system-clock.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { certificateAuthority } from '../../harness/servers/certificates.ts';
import type { PostgresProcess } from '../../harness/servers/postgres.ts';
import { startPostgres } from '../../harness/servers/postgres.ts';

const clock = createSystemClock();
const password = 'p@ss/w%rd:é';
let server: PostgresProcess;
let admin: pg.Client;
let port: string;
/** Certificates: what the URLs name. */
const files = mkdtempSync(join(tmpdir(), 'gw-urls-'));

const hba = `
hostssl   all needs_tls   127.0.0.1/32 scram-sha-256
hostssl   all needs_cert  127.0.0.1/32 scram-sha-256 clientcert=verify-ca
hostnossl all needs_plain 127.0.0.1/32 scram-sha-256
host      all postgres,either 127.0.0.1/32 scram-sha-256
`;

beforeAll(async () => {
  server = await startPostgres();
  admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  port = new URL(server.url).port;
  const { rows } = await admin.query<{ directory: string }>('SHOW data_directory');
  const directory = String(Object.values(rows[0] ?? {})[0]);
  const { uid, gid } = statSync(directory);
  const ours = certificateAuthority();
  const theirs = certificateAuthority();
  const { cert, key } = ours.issue(['localhost']);
  const client = ours.issue(['client']);
  const locked = createPrivateKey(client.key).export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: 'open sesame',
  });
  const own: [string, string | Buffer][] = [
    ['ca.crt', ours.root],
    ['other-ca.crt', theirs.root],
    ['client.crt', client.cert],
    ['client.key', client.key],
    ['locked.key', locked],
  ];
  for (const [name, text] of own) writeFileSync(join(files, name), text);
  for (const [name, text] of [
    ['server.crt', cert],
    ['server.key', key],
    ['root.crt', ours.root],
    ['pg_hba.conf', hba],
  ] as const) {
    const path = join(directory, name);
    writeFileSync(path, text);
    chownSync(path, uid, gid);
    chmodSync(path, 0o600);
  }
  await admin.query("ALTER SYSTEM SET ssl_ca_file = 'root.crt'");
  await admin.query('ALTER SYSTEM SET ssl = on');
  for (const user of ['needs_tls', 'needs_cert', 'needs_plain', 'either']) {
    await admin.query(`CREATE ROLE ${user} LOGIN PASSWORD ${pg.escapeLiteral(password)}`);
  }
  await admin.query('CREATE DATABASE "an other"');
  await admin.query('SELECT pg_reload_conf()');
  const isOn = async (): Promise<true | undefined> => {
    const { rows: shown } = await admin.query<{ ssl: string }>('SHOW ssl');
    return shown[0]?.ssl === 'on' ? true : undefined;
  };
  await eventually(isOn);
});

afterAll(async () => {
  await admin.end();
  await server.close();
  rmSync(files, { recursive: true });
});

interface Case {
  readonly user: string;
  readonly query: string;
  readonly expected: 'plain' | 'tls' | 'refused';
  /** The certificate is for `localhost` only. */
  readonly host?: string;
  /** Instead of the usual form of the URL; `LOGIN` and `PORT` are replaced. */
  readonly url?: string;
  readonly applicationName?: string;
  readonly database?: string;
}

const ca = 'sslrootcert=FILES/ca.crt';
const wrongName = '127.0.0.1';
const cases: Case[] = [
  { user: 'either', query: '', expected: 'plain' },
  { user: 'needs_tls', query: '', expected: 'refused' },
  { user: 'needs_plain', query: 'sslmode=disable', expected: 'plain' },
  { user: 'needs_plain', query: 'ssl=false', expected: 'plain' },
  { user: 'either', query: 'sslmode=disable&uselibpqcompat=true', expected: 'plain' },
  { user: 'needs_plain', query: 'sslmode=no-verify', expected: 'refused' },
  // strict: every mode proves who the server is
  ...['prefer', 'require', 'verify-ca', 'verify-full'].flatMap((mode): Case[] => [
    { user: 'needs_tls', query: `sslmode=${mode}`, expected: 'refused' },
    { user: 'needs_tls', query: `sslmode=${mode}&${ca}`, expected: 'tls' },
    { user: 'needs_tls', query: `sslmode=${mode}&sslrootcert=FILES/other-ca.crt`, expected: 'refused' },
    { user: 'needs_tls', query: `sslmode=${mode}&${ca}`, host: wrongName, expected: 'refused' },
  ]),
  { user: 'needs_tls', query: ca, expected: 'tls' },
  { user: 'needs_tls', query: 'ssl=true', expected: 'refused' },
  { user: 'needs_tls', query: `ssl=true&${ca}`, expected: 'tls' },
  { user: 'needs_tls', query: 'ssl=no-verify', host: wrongName, expected: 'tls' },
  { user: 'needs_tls', query: 'sslmode=no-verify', host: wrongName, expected: 'tls' },
  { user: 'needs_tls', query: 'sslmode=verify-full&sslrootcert=system', expected: 'refused' },
  // libpq's own meaning
  { user: 'needs_tls', query: 'uselibpqcompat=true&sslmode=prefer', host: wrongName, expected: 'tls' },
  { user: 'needs_tls', query: 'uselibpqcompat=true&sslmode=require', host: wrongName, expected: 'tls' },
  { user: 'needs_tls', query: `uselibpqcompat=true&sslmode=require&${ca}`, host: wrongName, expected: 'tls' },
  {
    user: 'needs_tls',
    query: 'uselibpqcompat=true&sslmode=require&sslrootcert=FILES/other-ca.crt',
    expected: 'refused',
  },
  {
    user: 'needs_tls',
    query: `uselibpqcompat=true&sslmode=verify-ca&${ca}`,
    host: wrongName,
    expected: 'tls',
  },
  {
    user: 'needs_tls',
    query: 'uselibpqcompat=true&sslmode=verify-ca&sslrootcert=FILES/other-ca.crt',
    expected: 'refused',
  },
  {
    user: 'needs_tls',
    query: `uselibpqcompat=true&sslmode=verify-full&${ca}`,
    host: wrongName,
    expected: 'refused',
  },
  { user: 'needs_tls', query: `uselibpqcompat=true&sslmode=verify-full&${ca}`, expected: 'tls' },
  // TLS at once
  { user: 'needs_tls', query: `sslnegotiation=direct&${ca}`, expected: 'tls' },
  { user: 'needs_tls', query: 'sslnegotiation=direct', expected: 'refused' },
  { user: 'needs_tls', query: `sslnegotiation=postgres&sslmode=require&${ca}`, expected: 'tls' },
  // client certificates
  { user: 'needs_cert', query: `sslmode=require&${ca}`, expected: 'refused' },
  {
    user: 'needs_cert',
    query: `sslmode=require&${ca}&sslcert=FILES/client.crt&sslkey=FILES/client.key`,
    expected: 'tls',
  },
  {
    user: 'needs_cert',
    query: `sslmode=require&${ca}&sslcert=FILES/client.crt&sslkey=FILES/locked.key&sslpassword=open%20sesame`,
    expected: 'tls',
  },
  {
    user: 'needs_cert',
    query: `sslmode=require&${ca}&sslcert=FILES/client.crt&sslkey=FILES/locked.key&sslpassword=wrong`,
    expected: 'refused',
  },
  // the rest of the session
  { user: 'either', query: 'application_name=ops', applicationName: 'ops', expected: 'plain' },
  { user: 'either', query: 'options=-c%20no_such_setting%3D1', expected: 'refused' },
  { user: 'either', query: 'options=-c%20search_path%3Dpg_catalog', expected: 'plain' },
  {
    user: 'either',
    query:
      'connect_timeout=5&keepalives=1&target_session_attrs=any&channel_binding=prefer&client_encoding=utf8',
    expected: 'plain',
  },
  { user: 'either', query: 'dbname=an%20other', database: 'an other', expected: 'plain' },
  {
    user: 'either',
    query: '',
    url: 'postgres://LOGIN@localhost:PORT/an%20other',
    database: 'an other',
    expected: 'plain',
  },
  { user: 'either', query: '', url: 'postgresql://LOGIN@127.0.0.1:PORT/postgres', expected: 'plain' },
  {
    user: 'either',
    query: '',
    url: 'postgres:///postgres?host=localhost&port=PORT&user=either&password=SECRET',
    expected: 'plain',
  },
  { user: 'either', query: '', url: 'postgres://either:wrong@localhost:PORT/postgres', expected: 'refused' },
  { user: 'either', query: '', url: 'postgres://either@localhost:PORT/postgres', expected: 'refused' },
  { user: 'either', query: '', url: 'postgres://LOGIN@localhost:PORT/none', expected: 'refused' },
];

function urlOf({ user, query, host = 'localhost', url }: Case): string {
  const secret = encodeURIComponent(password);
  const plain = url ?? `postgres://LOGIN@${host}:PORT/postgres${query === '' ? '' : `?${query}`}`;
  return plain
    .replace('LOGIN', `${user}:${secret}`)
    .replace('SECRET', secret)
    .replace('PORT', port)
    .replaceAll('FILES', files);
}

type Session = { readonly ssl: boolean; readonly name: string; readonly database: string };

const sessionQuery = `SELECT ssl, application_name AS name, datname AS database
  FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)`;

/** No refusal, but no answer in the time that a gateway waits for one: on a busy machine it is asked for again. */
const isLate = (reason: string | null): boolean => /timeout|in time/i.test(reason ?? '');

async function querySession(url: string): Promise<Session | 'refused' | undefined> {
  let pool: pg.Pool | null = null;
  try {
    pool = createPool(url, 1);
    const { rows } = await pool.query<Session>(`${sessionQuery} WHERE pid = pg_backend_pid()`);
    return rows[0] ?? 'refused';
  } catch (error) {
    return isLate(String(error)) ? undefined : 'refused';
  } finally {
    await pool?.end();
  }
}

/** The session of a listener that has really heard, or that it was told why nothing is heard. */
async function listeningSession(url: string): Promise<Session | 'refused' | undefined> {
  let user = '';
  const heard = Promise.withResolvers<void>();
  const state = Promise.withResolvers<'listening' | 'late' | 'refused'>();
  const changes = listenForKeyChanges({
    url,
    clock,
    onChange: (changed) => changed === user && heard.resolve(),
    onRevoked: () => undefined,
    // What it hears is shown below.
    notify: () => Promise.reject(new Error('there is nobody to ask')),
    onState: (listening, reason) =>
      state.resolve(listening ? 'listening' : isLate(reason) ? 'late' : 'refused'),
  });
  try {
    const first = await state.promise;
    if (first !== 'listening') return first === 'late' ? undefined : first;
    const { rows } = await admin.query<Session & { pid: number }>(
      `${sessionQuery.replace('SELECT', 'SELECT pid,')} WHERE query ~ 'LISTEN|SELECT 1' AND usename <> 'postgres'`,
    );
    const found = rows[0];
    if (found === undefined) throw new Error('the listener has no session');
    user = `user-${found.pid}`;
    // A notification stays within its database.
    const speaker = new pg.Client({ connectionString: server.url.replace(/postgres$/, found.database) });
    await speaker.connect();
    await speaker.query('SELECT pg_notify($1, $2)', [keyChangesChannel, user]);
    await speaker.end();
    await heard.promise;
    return { ssl: found.ssl, name: found.name, database: found.database };
  } finally {
    await changes.close();
    const left = async (): Promise<number | null> =>
      (await admin.query("SELECT 1 FROM pg_stat_activity WHERE usename ~ 'needs|either'")).rowCount;
    await expect.poll(left).toBe(0);
  }
}

test.each(cases)('$user $query $host $url: $expected', async (one) => {
  const { expected, applicationName, database = 'postgres' } = one;
  const url = urlOf(one);
  const ssl = expected === 'tls';
  const session = (name: string) =>
    expected === 'refused' ? 'refused' : { ssl, name: applicationName ?? name, database };
  expect(await eventually(() => querySession(url)), 'pg').toEqual(session('model-gateway'));
  expect(await eventually(() => listeningSession(url)), 'postgres').toEqual(session('model-gateway-listen'));
});

test('a renewed client certificate is used by the next connection; one that cannot be read ends nothing', async () => {
  const key = join(files, 'moving.key');
  const cert = join(files, 'moving.crt');
  const stranger = certificateAuthority().issue(['client']);
  writeFileSync(key, stranger.key);
  writeFileSync(cert, stranger.cert);
  const query = `sslmode=require&${ca}&sslcert=FILES/moving.crt&sslkey=FILES/moving.key`;
  const told: (string | null)[] = [];
  const url = urlOf({ user: 'needs_cert', query, expected: 'tls' });
  const pool = createPool(url, 1, { onCertificates: (trouble) => told.push(trouble) });
  await expect(pool.query('SELECT 1')).rejects.toThrow();
  copyFileSync(join(files, 'client.key'), key);
  copyFileSync(join(files, 'client.crt'), cert);
  expect((await pool.query('SELECT 1')).rowCount).toBe(1);
  writeFileSync(key, 'half a ke');
  rmSync(cert);
  const rows = () => pool.query('SELECT 1').then(({ rowCount }) => rowCount, String);
  const onNewConnection = async () => {
    await admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'needs_cert'");
    await expect.poll(rows).toBe(1);
  };
  await onNewConnection();
  await onNewConnection();
  expect(told, 'once, not for each connection').toEqual(['ENOENT']);
  copyFileSync(join(files, 'client.key'), key);
  copyFileSync(join(files, 'client.crt'), cert);
  await onNewConnection();
  expect(told).toEqual(['ENOENT', null]);
  await pool.end();
});
