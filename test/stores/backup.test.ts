/** docs/backup.md, done as it says: dumped while the gateway serves, restored, and the same keys, rows and sums are there. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { blocksIn, printedByShell } from '../harness/clients/page-blocks.ts';
import { chat, chatOk, logRows, logRowsOnceThere } from '../harness/gateway/chat.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { sealingKeys } from '../harness/gateway/start-gateway.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { sql } from '../harness/servers/fault-postgres.ts';
import { useFolder, useServer } from '../harness/servers/use-started.ts';
import { startVendorPack } from '../harness/vendors/vendor-pack.ts';
import type { KeyRecord } from '../harness/vendors/wire-types.ts';
import { startDebianPostgres } from './support/debian-postgres.ts';

const postgres = useServer(startDebianPostgres);
const vendors = useServer(startVendorPack);
const folder = useFolder();
const keys = sealingKeys();
const main = join(import.meta.dirname, '../../dist/main.js');

/** A gateway on one of the databases, with the sealing keys of the first unless others are named. */
const onDatabase = (name: string, sealing = keys): Promise<GatewayUnderTest> =>
  startForTest({
    vendors,
    database: { url: postgres.url(name), drop: () => Promise.resolve() },
    env: { GW_SEALING_KEYS: sealing },
  });

test('a database that was dumped under way and restored holds the same keys, rows and sums', async () => {
  await sql(postgres.url('postgres'), 'CREATE DATABASE gateway');
  const [dump = '', restore = '', ready = '', check = '', spend = '', ...more] = blocksIn(
    'docs/backup.md',
    'sh',
  );
  expect(more).toEqual([]);
  const type = (lines: string, variables: Readonly<Record<string, string>> = {}) => {
    const functions = `model-gateway() { "${process.execPath}" "${main}" "$@"; }`;
    const env = { ...postgres.env, RESTORED_URL: postgres.url('gateway_restored'), ...variables };
    return printedByShell(`cd '${folder.path}'\n${functions}\n${lines}`, {
      DATABASE_URL: postgres.url('gateway'),
      ...env,
    });
  };

  const before = await onDatabase('gateway');
  const user = await registerWithKeys(before.url);
  const service = await user.client.post('/v1/service-keys', { label: 'ci' });
  for (const mode of ['gw/cheap', 'gw/balanced', 'gw/premium']) await chatOk(user.client, { model: mode });
  const rows = await logRowsOnceThere(user.client, 3);
  const stored = (await user.client.get('/v1/keys')).json<KeyRecord[]>();
  const sums = (await user.client.get('/v1/stats?group_by=provider,model')).text;
  const spentIn = async (name: string) =>
    (JSON.parse(await type(spend, { DATABASE_URL: postgres.url(name) })) as { users: readonly unknown[] })
      .users;
  const spent = await spentIn('gateway');
  await type(dump);
  await chatOk(user.client);

  await type(restore);
  const after = await onDatabase('gateway_restored');
  const known = httpClient(after.url, user.key);
  expect(await logRows(known)).toEqual(rows);
  expect((await known.get('/v1/keys')).json()).toEqual(stored);
  expect((await known.get('/v1/stats?group_by=provider,model')).text).toBe(sums);
  expect(await spentIn('gateway_restored')).toEqual(spent);
  expect(spent).toHaveLength(1);
  const { api_key: another } = service.json<{ api_key: string }>();
  expect((await httpClient(after.url, another).get('/v1/keys')).status).toBe(200);

  expect(await type(ready, { ADMIN: after.adminUrl })).toContain('"status":"ready"');
  const asked = { GW: after.url, KEY: user.key, KEY_ID: stored[0]?.id ?? '' };
  expect(await type(check, asked)).toContain('"verdict":"valid"');
  expect((await chatOk(known)).gateway.provider).toBe('openai');

  const strange = await onDatabase('gateway_restored', sealingKeys('other'));
  const refused = await chat(httpClient(strange.url, user.key));
  expect([refused.status, refused.text]).toEqual([503, expect.stringContaining('stored_key_unreadable')]);
});
