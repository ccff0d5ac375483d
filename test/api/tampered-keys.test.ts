/** SPEC 1.2 and SECURITY.md: who can write the rows of the database cannot have a provider key sent to a server of theirs. */
import { randomBytes, randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chat } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import type { User } from '../harness/gateway/register.ts';
import { addKey, registerUser } from '../harness/gateway/register.ts';
import { sealedByFirstVersion } from '../harness/gateway/sealed-v1.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { useServer } from '../harness/servers/use-started.ts';
import type { FakeVendor } from '../harness/vendors/fake-vendor.ts';
import { startFakeVendor } from '../harness/vendors/fake-vendor.ts';

const masterKey = randomBytes(32);

/** The server of whoever writes the rows. */
const thief = useServer(startFakeVendor);
/** The server that the self_hosted keys were registered for. */
const ownServer = useServer(startFakeVendor);
const gateway = useGateway({ env: { GW_SEALING_KEYS: `k1:${masterKey.toString('base64')}` } });
let database: pg.Client;

beforeAll(async () => {
  database = new pg.Client({ connectionString: gateway.database.url });
  await database.connect();
  // Who may write rows may own the table: no constraint protects a key.
  const { rows } = await database.query<{ name: string }>(
    `SELECT quote_ident(conname) AS name FROM pg_constraint
     WHERE conrelid = 'provider_keys'::regclass AND contype = 'c'`,
  );
  for (const { name } of rows) await database.query(`ALTER TABLE provider_keys DROP CONSTRAINT ${name}`);
});

afterAll(async () => {
  await database?.end();
});

/** A user with a key of OpenAI and one for their own server, and somebody else with the same. */
interface Rows {
  readonly victim: User;
  readonly other: User;
  readonly vendorKey: string;
  readonly ownKey: string;
  readonly secrets: { readonly vendor: string; readonly own: string };
}

async function twoUsers(): Promise<Rows> {
  const secrets = { vendor: `sk-vendor-${randomUUID()}`, own: `sk-own-${randomUUID()}` };
  const victim = await registerUser(gateway.url);
  const other = await registerUser(gateway.url);
  const own = { provider: 'self_hosted', base_url: ownServer.url, declared_region: 'us' };
  await addKey(other, { provider: 'openai', api_key: 'sk-other' });
  await addKey(other, { ...own, base_url: thief.url, api_key: 'sk-other-own' });
  const { id: vendorKey } = await addKey(victim, { provider: 'openai', api_key: secrets.vendor });
  const { id: ownKey } = await addKey(victim, { ...own, api_key: secrets.own });
  return { victim, other, vendorKey, ownKey, secrets };
}

/** Every way in which these two users can have a key used. */
async function useEverything({ victim, other }: Rows): Promise<string> {
  const override = (target: string) => ({ 'x-gateway-override-model': target });
  const targets = ['openai:m', 'anthropic:m', 'together:m', 'sarvam:m', 'self_hosted:m'];
  const texts: string[] = [];
  for (const { client } of [victim, other]) {
    for (const residency of [{}, { 'x-gateway-residency': 'india' }]) {
      for (const target of targets) {
        texts.push((await chat(client, {}, { ...override(target), ...residency })).text);
      }
      texts.push((await chat(client, {}, residency as Record<string, string>)).text);
    }
  }
  return texts.join('\n');
}

/** Where a text arrived, in a header or in a body. */
function arrivals(secret: string): string[] {
  const servers = { ...gateway.vendors, thief, ownServer } as Record<string, unknown>;
  const names = ['openai', 'anthropic', 'together', 'sarvam', 'thief', 'ownServer'];
  return names.filter((name) =>
    (servers[name] as FakeVendor).ledger.some(({ headers, bodyText }) =>
      (JSON.stringify(headers) + bodyText).includes(secret),
    ),
  );
}

/** One edit of one row: SQL below `UPDATE provider_keys AS k`, `$2` being the thief's address, `$3` the other user. */
interface Edit {
  readonly columns: readonly string[];
  readonly row: 'vendorKey' | 'ownKey';
  readonly set: string;
  /** Where the secret may still be sent: where it was registered for. */
  readonly allowed: readonly string[];
}

const ofOther = (provider: string, column: string) =>
  `(SELECT o.${column} FROM provider_keys o WHERE o.user_id = $3 AND o.provider = '${provider}')`;
const takeSealOf = (provider: string) =>
  ['nonce', 'ciphertext', 'master_key_id', 'seal_version']
    .map((column) => `${column} = ${ofOther(provider, column)}`)
    .join(', ');

const edits: readonly Edit[] = [
  { columns: ['base_url'], row: 'vendorKey', set: 'base_url = $2', allowed: [] },
  { columns: ['base_url'], row: 'ownKey', set: 'base_url = $2', allowed: [] },
  { columns: ['base_url'], row: 'ownKey', set: 'base_url = NULL', allowed: [] },
  { columns: ['base_url'], row: 'ownKey', set: `base_url = 'no address at all'`, allowed: [] },
  { columns: ['declared_region'], row: 'vendorKey', set: `declared_region = 'in'`, allowed: [] },
  { columns: ['declared_region'], row: 'ownKey', set: `declared_region = 'in'`, allowed: [] },
  {
    columns: ['provider', 'base_url', 'declared_region'],
    row: 'vendorKey',
    set: `provider = 'self_hosted', base_url = $2, declared_region = 'us'`,
    allowed: [],
  },
  { columns: ['provider'], row: 'vendorKey', set: `provider = 'anthropic'`, allowed: [] },
  { columns: ['provider'], row: 'ownKey', set: `provider = 'sarvam'`, allowed: [] },
  {
    columns: ['user_id'],
    row: 'ownKey',
    set: 'user_id = $3, base_url = $2',
    allowed: [],
  },
  { columns: ['id'], row: 'ownKey', set: 'id = gen_random_uuid()', allowed: [] },
  { columns: ['id'], row: 'vendorKey', set: 'id = gen_random_uuid()', allowed: [] },
  { columns: ['nonce'], row: 'ownKey', set: `nonce = ${ofOther('openai', 'nonce')}`, allowed: [] },
  {
    columns: ['ciphertext'],
    row: 'ownKey',
    set: `ciphertext = ${ofOther('openai', 'ciphertext')}`,
    allowed: [],
  },
  { columns: ['master_key_id'], row: 'vendorKey', set: `master_key_id = 'k2'`, allowed: [] },
  { columns: ['nonce', 'ciphertext'], row: 'ownKey', set: takeSealOf('self_hosted'), allowed: [] },
  { columns: ['seal_version'], row: 'vendorKey', set: 'seal_version = 1', allowed: [] },
  { columns: ['seal_version'], row: 'vendorKey', set: 'seal_version = 3', allowed: [] },
  {
    columns: ['seal_version', 'base_url'],
    row: 'ownKey',
    set: 'seal_version = 1, base_url = $2',
    allowed: [],
  },
  {
    columns: ['seal_version', 'declared_region'],
    row: 'ownKey',
    set: `seal_version = 1, declared_region = 'in'`,
    allowed: [],
  },
  { columns: ['label'], row: 'ownKey', set: `label = 'renamed'`, allowed: ['ownServer'] },
  { columns: ['created_at'], row: 'vendorKey', set: `created_at = '2001-01-01'`, allowed: ['openai'] },
];

describe('a row somebody has written to', () => {
  test.each(edits)('$row: SET $set', async ({ row, set, allowed }) => {
    const rows = await twoUsers();
    // Postgres wants every parameter used.
    const { rowCount } = await database.query(
      `UPDATE provider_keys AS k SET ${set} WHERE id = $1 AND $2::text <> '' AND $3::uuid IS NOT NULL`,
      [rows[row], thief.url, rows.other.id],
    );
    expect(rowCount).toBe(1);
    const texts = await useEverything(rows);
    const secret = row === 'vendorKey' ? rows.secrets.vendor : rows.secrets.own;
    expect(arrivals(secret)).toEqual(allowed);
    for (const hidden of Object.values(rows.secrets)) expect(texts).not.toContain(hidden);
    // The row beside it serves as before.
    const beside = row === 'vendorKey' ? rows.secrets.own : rows.secrets.vendor;
    expect(arrivals(beside)).toEqual([row === 'vendorKey' ? 'ownServer' : 'openai']);
  });

  test('is in the table above for every column there is', async () => {
    const { rows } = await database.query<{ name: string }>(
      `SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'provider_keys'`,
    );
    const covered = new Set(edits.flatMap(({ columns }) => columns));
    expect(rows.map(({ name }) => name).filter((name) => !covered.has(name))).toEqual([]);
  });
});

test.each<[name: string, headers: Record<string, string>]>([
  ['override', { 'x-gateway-override-model': 'openai:m' }],
  ['tier', {}],
])(
  'a key that does not open is a failure of ours that is not worth a repeat, as %s',
  async (_name, headers) => {
    const user = await registerUser(gateway.url);
    const { id } = await addKey(user, { provider: 'openai', api_key: 'sk-unopened' });
    await database.query(`UPDATE provider_keys SET master_key_id = 'k2' WHERE id = $1`, [id]);
    const response = await chat(user.client, {}, headers);
    expectError(response, { status: 503, type: 'service_unavailable_error', code: 'stored_key_unreadable' });
    expect(response.headers['x-should-retry']).toBe('false');
    expect(gateway.vendors.openai.ledger).toHaveLength(0);
  },
);

describe('the seal moved to another row', () => {
  test.each([1, 2])('does not open there, whatever version (%d) is claimed', async (version) => {
    const rows = await twoUsers();
    await database.query(
      `UPDATE provider_keys AS mine SET nonce = theirs.nonce, ciphertext = theirs.ciphertext, seal_version = $3
       FROM provider_keys AS theirs
       WHERE mine.user_id = $1 AND mine.provider = 'self_hosted' AND theirs.id = $2`,
      [rows.other.id, rows.vendorKey, version],
    );
    await useEverything(rows);
    expect(arrivals(rows.secrets.vendor)).toEqual(['openai']);
  });
});

describe('a row that an older release sealed', () => {
  async function sealAsBefore(keyId: string, user: User, provider: string, secret: string): Promise<void> {
    const { nonce, ciphertext } = sealedByFirstVersion(masterKey, secret, {
      recordId: keyId,
      userId: user.id,
      provider,
    });
    await database.query(
      'UPDATE provider_keys SET nonce = $2, ciphertext = $3, seal_version = 1 WHERE id = $1',
      [keyId, nonce, ciphertext],
    );
  }

  test('serves as before', async () => {
    const rows = await twoUsers();
    await sealAsBefore(rows.vendorKey, rows.victim, 'openai', rows.secrets.vendor);
    await sealAsBefore(rows.ownKey, rows.victim, 'self_hosted', rows.secrets.own);
    await useEverything(rows);
    expect(arrivals(rows.secrets.vendor)).toEqual(['openai']);
    expect(arrivals(rows.secrets.own)).toEqual(['ownServer']);
  });

  test('sends a vendor’s key to the vendor only, whatever address stands beside it', async () => {
    const rows = await twoUsers();
    await sealAsBefore(rows.vendorKey, rows.victim, 'openai', rows.secrets.vendor);
    await database.query(`UPDATE provider_keys SET base_url = $2, declared_region = 'in' WHERE id = $1`, [
      rows.vendorKey,
      thief.url,
    ]);
    await useEverything(rows);
    expect(arrivals(rows.secrets.vendor)).toEqual(['openai']);
  });

  test.each(['NULL', `'no address at all'`])(
    'with the address %s is refused, not an error of ours',
    async (url) => {
      const rows = await twoUsers();
      await sealAsBefore(rows.ownKey, rows.victim, 'self_hosted', rows.secrets.own);
      await database.query(`UPDATE provider_keys SET base_url = ${url} WHERE id = $1`, [rows.ownKey]);
      const response = await chat(rows.victim.client, {}, { 'x-gateway-override-model': 'self_hosted:m' });
      expect(response.status).toBe(502);
      expect(response.headers['x-should-retry']).toBe('false');
      expect(response.text).toContain('"address_unreadable"');
      expect(response.text).toContain('The stored address of this key cannot be read');
      expect(arrivals(rows.secrets.own)).toEqual([]);
    },
  );
});
