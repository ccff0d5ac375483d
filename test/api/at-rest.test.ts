/** SPEC 1.2 and 4.5: what lies in the database, and what does not. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chat, chatOk, logRowsOnceThere } from '../harness/gateway/chat.ts';
import { addKey, registerUser, registerWithKeys } from '../harness/gateway/register.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';

const gateway = useGateway();
let database: pg.Client;

beforeAll(async () => {
  database = new pg.Client({ connectionString: gateway.database.url });
  await database.connect();
});

afterAll(async () => {
  await database?.end();
});

/** Every row of every table as text, binary columns in hex. */
async function dump(): Promise<string> {
  const { rows: names } = await database.query<{ name: string }>(
    "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public'",
  );
  const texts: string[] = [];
  for (const { name } of names) {
    const { rows } = await database.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
    texts.push(...rows.map(({ row }) => row));
  }
  return texts.join('\n');
}

describe('the database', () => {
  test('holds neither service keys nor provider keys, in no spelling', async () => {
    const secret = `sk-canary-${randomUUID()}`;
    const user = await registerUser(gateway.url);
    await addKey(user, { provider: 'openai', api_key: secret, label: 'canary' });
    await chatOk(user.client);
    await logRowsOnceThere(user.client, 1);
    const text = await dump();
    expect(text).toContain('canary');
    for (const value of [secret, user.key]) {
      const bytes = Buffer.from(value);
      for (const spelling of [value, bytes.toString('base64'), bytes.toString('hex')])
        expect(text).not.toContain(spelling);
    }
  });

  test('holds another ciphertext each time, for the same secret', async () => {
    const users = [await registerUser(gateway.url), await registerUser(gateway.url)];
    for (const user of users) await addKey(user, { provider: 'openai', api_key: 'the-same-secret' });
    const { rows } = await database.query<{ ciphertext: Buffer; nonce: Buffer }>(
      'SELECT ciphertext, nonce FROM provider_keys WHERE user_id = ANY($1)',
      [users.map((user) => user.id)],
    );
    expect(rows).toHaveLength(2);
    expect(rows[0]?.ciphertext.equals(rows[1]?.ciphertext ?? Buffer.alloc(0))).toBe(false);
    expect(rows[0]?.nonce.equals(rows[1]?.nonce ?? Buffer.alloc(0))).toBe(false);
  });

  test('that somebody has tampered with opens no door: a secret moved to another user’s row stays shut', async () => {
    const [victim, thief] = [await registerUser(gateway.url), await registerUser(gateway.url)];
    await addKey(victim, { provider: 'openai', api_key: 'sk-victim' });
    await addKey(thief, { provider: 'openai', api_key: 'sk-thief' });
    await database.query(
      `UPDATE provider_keys AS mine SET ciphertext = other.ciphertext, nonce = other.nonce
       FROM provider_keys AS other WHERE mine.user_id = $1 AND other.user_id = $2`,
      [thief.id, victim.id],
    );
    const response = await chat(thief.client);
    expect(response.status).toBeGreaterThanOrEqual(500);
    expect(response.text).not.toContain('sk-');
    expect(gateway.vendors.ledger()).toEqual([]);
    expect((await chat(victim.client)).status).toBe(200);
  });

  test('holds the effective request id on the log row', async () => {
    const user = await registerWithKeys(gateway.url, ['openai']);
    const idOf = async (sent: string) => {
      const response = await chat(user.client, {}, { 'x-request-id': sent });
      return String(response.headers['x-request-id']);
    };
    const ids = [await idOf('mine-1'), await idOf('not valid!')];
    await logRowsOnceThere(user.client, 2);
    const { rows } = await database.query<{ request_id: string }>(
      'SELECT request_id FROM request_logs WHERE user_id = $1 ORDER BY created_at',
      [user.id],
    );
    expect(rows.map((row) => row.request_id)).toEqual(ids);
    expect(ids[0]).toBe('mine-1');
  });
});
