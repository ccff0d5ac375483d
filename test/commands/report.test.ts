/** Evidence as operators make it and auditors check it: a report over 100,000 rows, and what tampers with it. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { facts, reportOf } from '../core/evidence/a-report.ts';
import type { TestDatabase } from '../harness/servers/postgres.ts';
import { createDatabase } from '../harness/servers/postgres.ts';
import { runCommand } from './run-command.ts';

const main = join(import.meta.dirname, '../../dist/main.js');
const folder = mkdtempSync(join(tmpdir(), 'gw-evidence-'));
const path = (name: string): string => join(folder, name);
const [keyFile, publicFile, otherFile] = [
  path('evidence.pem'),
  path('evidence.pub.pem'),
  path('other.pub.pem'),
];
const wholeFile = path('whole.ndjson');

/** As the rows are made below. */
const all = 100_000;
const users = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'] as const;
const period = ['--from', '2026-11-01', '--to', '2026-11-04'] as const;

let database: TestDatabase;
let lines: string[] = [];
let client: pg.Client;

interface Line {
  readonly kind: string;
  readonly [field: string]: unknown;
}
const read = (line = ''): Line => JSON.parse(line) as Line;
const count = async (where: string): Promise<number> => {
  const { rows } = await client.query<{ count: string }>(`SELECT count(*) FROM request_logs WHERE ${where}`);
  return Number(rows[0]?.count);
};

beforeAll(async () => {
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  // Of ten requests four were free, three asked, two are of a bound user, one of a bound deployment. Each hundredth was
  // refused; nothing happened in the hour from 05 to 06.
  await client.query(
    `INSERT INTO request_logs (id, row_id, created_at, user_id, key_id, request_id, mode, provider, model,
       usage_reported, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, cache_write_long_tokens,
       reasoning_tokens, latency_ms, cost_micro_usd, saved_micro_usd, cache_hit, stream, status, error,
       residency_requested, residency_bound_by, residency_actual, attempts, tables_version)
     SELECT i, gen_random_uuid(),
       '2026-11-01T00:00:00Z'::timestamptz + i * interval '2 seconds'
         + CASE WHEN i >= 9000 THEN interval '1 hour' ELSE interval '0' END,
       CASE WHEN i % 2 = 0 THEN $1::uuid ELSE $2::uuid END, CASE WHEN i % 100 > 0 THEN gen_random_uuid() END, 'r-' || i,
       'gw/balanced', CASE WHEN i % 100 = 0 THEN 'none' ELSE 'sarvam' END, 'sarvam-m',
       true, 1, 1, 0, 0, 0, 0, 12, 1, 0, false, false,
       CASE WHEN i % 100 = 0 THEN 'error' ELSE 'success' END,
       CASE WHEN i % 100 = 0 THEN 'residency_error: No key in India: none.' END,
       CASE WHEN i % 10 < 6 THEN 'india' END,
       CASE WHEN i % 10 < 3 THEN 'request' WHEN i % 10 < 5 THEN 'user' WHEN i % 10 = 5 THEN 'deployment' END,
       'india',
       CASE WHEN i % 100 = 0 THEN '[]'::jsonb ELSE '[{"provider":"sarvam","model":"sarvam-m","status":200,
         "reason":"served","latency_ms":9,"end":"served","residency":"india","address_class":"public"}]'::jsonb END,
       'v'
     FROM generate_series(0, $3::integer - 1) AS i`,
    [...users, all],
  );
  const made = await runCommand(['evidence-key', keyFile]);
  expect(made).toMatchObject({ code: 0, stderr: '' });
  writeFileSync(publicFile, made.stdout);
  writeFileSync(otherFile, (await runCommand(['evidence-key', path('other.pem')])).stdout);
  const written = await reported(...period);
  // On a busy machine it tells on stderr how far it is.
  expect(written.code, written.stderr).toBe(0);
  writeFileSync(wholeFile, written.stdout);
  lines = written.stdout.trimEnd().split('\n');
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
  rmSync(folder, { recursive: true, force: true });
});

const reported = (...args: readonly string[]) =>
  runCommand(['report', '--key', keyFile, ...args], {
    DATABASE_URL: database.url,
    GW_STORAGE_REGION: 'ap-south-1',
  });

const verified = (file: string, ...args: readonly string[]) =>
  runCommand(['verify-report', file, '--public-key', publicFile, ...args]);

/** What is said of the report with other lines. */
async function verdictOn(changed: readonly string[]): Promise<{ code: number | null; said: string }> {
  const file = path('changed.ndjson');
  writeFileSync(file, changed.map((line) => `${line}\n`).join(''));
  const { code, stdout, stderr } = await verified(file);
  expect(stdout).toBe('');
  return { code, said: stderr };
}

test('a key is made in a file of its owner, never over another', async () => {
  expect(statSync(keyFile).mode & 0o777).toBe(0o600);
  expect(readFileSync(keyFile, 'utf8')).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
  expect(readFileSync(publicFile, 'utf8')).toMatch(/^-----BEGIN PUBLIC KEY-----\n/);
  expect(await runCommand(['evidence-key', keyFile])).toMatchObject({ code: 1, stdout: '' });
});

describe('a report over 100,000 rows', () => {
  test('lists every request that asked for or was bound to India, and counts the others', async () => {
    const listed = lines.map(read).filter(({ kind }) => kind === 'request');
    expect(listed).toHaveLength(await count('residency_requested IS NOT NULL'));
    const { rows } = await client.query<{ id: string }>(
      'SELECT id FROM request_logs WHERE residency_requested IS NOT NULL ORDER BY created_at, id',
    );
    expect(listed.map(({ id }) => String(id))).toEqual(rows.map(({ id }) => id));
    expect(read(lines.at(-1))).toMatchObject({
      hours: 72,
      rows: all,
      listed: listed.length,
      bound_by: {
        request: await count(`residency_bound_by = 'request'`),
        user: await count(`residency_bound_by = 'user'`),
        deployment: await count(`residency_bound_by = 'deployment'`),
        unknown: 0,
      },
      served_in: {
        india: await count(`residency_requested = 'india' AND status = 'success'`),
        none: await count(`residency_requested = 'india' AND status = 'error'`),
        global: 0,
        cache: 0,
      },
    });
  });

  test('has a line for each hour, with the counts of its rows', async () => {
    const { rows } = await client.query<{ hour: string; rows: string; listed: string }>(
      `SELECT to_char(date_trunc('hour', created_at, 'UTC') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS".000000Z"') AS hour,
         count(*) AS rows, count(residency_requested) AS listed FROM request_logs GROUP BY 1`,
    );
    const stored = new Map(rows.map((row) => [row.hour, [Number(row.rows), Number(row.listed)]]));
    const hours = lines.map(read).filter(({ kind }) => kind === 'hour');
    expect(hours).toHaveLength(72);
    for (const { hour, rows: held, listed } of hours)
      expect([held, listed], String(hour)).toEqual(stored.get(String(hour)) ?? [0, 0]);
    expect(stored.has('2026-11-01T05:00:00.000000Z')).toBe(false);
  });

  test('says where rows are kept, and of each request where it was served, by which key and address', () => {
    expect(read(lines[0])).toMatchObject({
      storage_region: 'ap-south-1',
      from: '2026-11-01T00:00:00.000000Z',
      complete_until: '2026-11-04T00:00:00.000000Z',
      oldest_row: '2026-11-01T00:00:00.000000Z',
    });
    expect(read(lines[1])).toMatchObject({
      served_in: 'none',
      error: 'residency_error',
      bound_by: 'request',
    });
    const second = read(lines[2]);
    expect(second).toMatchObject({
      id: 1,
      served_in: 'india',
      address_class: 'public',
      key_id: expect.any(String),
    });
    expect(second['attempts']).toMatchObject([
      { provider: 'sarvam', residency: 'india', key_id: second['key_id'] },
    ]);
  });

  test('is of one user where one is named, by the id that stays when the user is gone', async () => {
    const { code, stdout } = await reported(...period, '--user', users[0]);
    expect(code).toBe(0);
    writeFileSync(path('one.ndjson'), stdout);
    const { stdout: said } = await verified(path('one.ndjson'), '--json');
    expect(JSON.parse(said)).toMatchObject({
      verdict: 'proven',
      user_id: users[0],
      rows: await count(`user_id = '${users[0]}'`),
      listed: await count(`user_id = '${users[0]}' AND residency_requested IS NOT NULL`),
    });
  });

  test('is proven by its key, without a database', async () => {
    const { code, stdout, stderr } = await verified(wholeFile);
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/intact, 2026-11-01T00:00:00.000000Z to 2026-11-04T00:00:00.000000Z, all users/);
    expect(stdout).toContain('100000, of which 60000 had to stay in India');
  });

  test('is whole but unproven where nobody says whose key it should be, and refused for another', async () => {
    const unproven = await runCommand(['verify-report', wholeFile]);
    expect(unproven).toMatchObject({ code: 3, stdout: expect.stringContaining('intact') });
    expect(unproven.stderr).toContain('nothing proves who signed it');
    const { code, stderr } = await runCommand(['verify-report', wholeFile, '--public-key', otherFile]);
    expect([code, stderr]).toEqual([65, expect.stringContaining('line 1 names another key than yours')]);
  });
});

describe('the first broken link is named:', () => {
  const at = (kind: string, index: number): number =>
    lines.flatMap((line, number) => (line.startsWith(`{"kind":"${kind}"`) ? [number] : []))[index] ?? 0;

  test('one row changed', async () => {
    const changed = at('request', 40_000);
    const { id, created_at } = read(lines[changed]);
    const line = (lines[changed] ?? '').replace('"served_in":"india"', '"served_in":"global"');
    const { code, said } = await verdictOn(lines.with(changed, line));
    const hour = `${String(created_at).slice(0, 13)}:00:00.000000Z`;
    expect(code).toBe(65);
    expect(said).toContain(`line ${changed + 1} (hour ${hour}, request ${id}) was changed`);
  });

  test('one row removed', async () => {
    const gone = at('request', 30_000);
    const { code, said } = await verdictOn(lines.toSpliced(gone, 1));
    expect(code).toBe(65);
    expect(said).toContain(`line ${gone + 1} `);
    expect(said).toContain('is request 30002 where 30001 belongs: requests are missing');
  });

  test('one hour swapped with another, and one taken out', async () => {
    const [first, second, third] = [at('hour', 9) + 1, at('hour', 10) + 1, at('hour', 11) + 1];
    const swapped = [
      ...lines.slice(0, first),
      ...lines.slice(second, third),
      ...lines.slice(first, second),
      ...lines.slice(third),
    ];
    for (const changed of [swapped, lines.toSpliced(first, second - first)]) {
      const { code, said } = await verdictOn(changed);
      expect(code).toBe(65);
      expect(said).toContain(`line ${first + 1} (hour 2026-11-01T10:00:00.000000Z, `);
      expect(said).toContain('is of the hour 2026-11-01T11:00:00.000000Z');
    }
  });

  test('the tail cut off, also in JSON', async () => {
    const cut = path('cut.ndjson');
    writeFileSync(cut, lines.slice(0, 1_000).join('\n'));
    const { code, stdout } = await verified(cut, '--json');
    expect(code).toBe(65);
    expect(JSON.parse(stdout)).toMatchObject({
      verdict: 'broken',
      line: 1_000,
      problem: expect.stringMatching(/cut off/),
    });
  });
});

test.each<[name: string, args: readonly string[], code: number, said: RegExp]>([
  ['no key', ['report', ...period], 1, /no key to sign with; "model-gateway evidence-key/],
  ['a public key', ['report', ...period, '--key', publicFile], 1, /must be an Ed25519 private key/],
  [
    'a key that is not there',
    ['report', ...period, '--key', '/nowhere'],
    66,
    /cannot read \/nowhere \(ENOENT\)/,
  ],
  ['a future', ['report', '--from', '1d', '--to', '2999-01-01', '--key', keyFile], 64, /lies in the future/],
  ['an age', ['report', '--from', '1999-01-01', '--key', keyFile], 64, /more than 100000 hours/],
  [
    'nobody',
    ['report', ...period, '--user', 'a@b.example', '--key', keyFile],
    66,
    /there is no user a@b.example/,
  ],
  ['no report', ['verify-report', '/nowhere'], 66, /cannot read \/nowhere \(ENOENT\)/],
  [
    'a private matter',
    ['verify-report', wholeFile, '--public-key', wholeFile],
    1,
    /holds no Ed25519 public key/,
  ],
  ['another file', ['verify-report', publicFile], 65, /line 1 is not JSON/],
])('%s is named as a mistake', async (_name, args, code, said) => {
  const ended = await runCommand(args, { DATABASE_URL: database.url });
  expect([ended.code, ended.stdout, ended.stderr]).toEqual([code, '', expect.stringMatching(said)]);
});

test('a report of anybody moves no cursor of whoever checks it', async () => {
  const moving = '\u001b[2J\u009b2J\nsigned by key   yours';
  const [named, unknown] = [path('named.ndjson'), path('unknown.ndjson')];
  writeFileSync(named, reportOf({ facts: { storage_region: moving } }));
  writeFileSync(unknown, reportOf({ facts: { ...facts, [moving]: 1 } as typeof facts }));
  const shown = '\\u{1b}[2J\\u{9b}2J\\u{a}signed by key   yours';
  expect((await runCommand(['verify-report', named])).stdout).toContain(`rows kept in    ${shown}\n`);
  expect((await runCommand(['verify-report', unknown])).stderr).toContain(`Unrecognized key: "${shown}"\n`);
});

test('a key may come from the settings', async () => {
  const settings = { DATABASE_URL: database.url, GW_EVIDENCE_KEY_FILE: keyFile };
  const { code, stdout } = await runCommand(['report', '--from', '1h'], settings);
  expect(code).toBe(0);
  writeFileSync(path('empty.ndjson'), stdout);
  expect(await verified(path('empty.ndjson'))).toMatchObject({ code: 0 });
});

test('a key may come on stdin, and lie nowhere', () => {
  const report = execFileSync(process.execPath, [main, 'report', '--from', '1h', '--key', '-'], {
    input: readFileSync(keyFile),
    env: { PATH: process.env['PATH'] ?? '', DATABASE_URL: database.url },
    encoding: 'utf8',
  });
  expect(read(report.trimEnd().split('\n').at(-1))).toMatchObject({ kind: 'end', rows: 0 });
});
