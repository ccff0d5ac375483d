/**
 * A Postgres that asks for TLS and for a client certificate: the whole gateway on it. Each form of the URL by itself, in both
 * drivers: test/adapters/postgres/connection-urls.test.ts.
 */
import { describe, expect, test } from 'vitest';
import { chatOk } from '../harness/gateway/chat.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { startForTest, startUnreadyForTest } from '../harness/gateway/use-gateway.ts';
import { metric, untilReadyIs, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import { sql } from '../harness/servers/fault-postgres.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { startTlsPostgres } from './support/tls-postgres.ts';

const postgres = useServer(startTlsPostgres);
const forgetting = () => Promise.resolve();

const files = (text: string) => text.replaceAll('FILES', postgres.folder);
const client = 'sslcert=FILES/client.crt&sslkey=FILES/client.key';

describe.each(['require', 'verify-ca', 'verify-full'])('sslmode=%s', (mode) => {
  test('schema, queries, inserts and key changes all use it', async () => {
    const url = postgres.url(files(`sslmode=${mode}&sslrootcert=FILES/ca.crt&${client}`));
    const gateway = await startForTest({ database: { url, drop: forgetting } });
    await untilReadyIs(gateway, 200);
    const user = await registerWithKeys(gateway.url, ['openai']);
    await chatOk(user.client);
    await untilRowsStored(gateway);
    await expect.poll(() => metric(gateway, 'gw_key_changes_listening')).toBe(1);
    const sessions = await sql<{ name: string; ssl: boolean; client_dn: string | null }>(
      postgres.adminUrl,
      `SELECT DISTINCT application_name AS name, ssl, client_dn FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
       WHERE usename = 'gateway' ORDER BY 1`,
    );
    expect(sessions).toEqual([
      { name: 'model-gateway', ssl: true, client_dn: '/CN=Test Server' },
      { name: 'model-gateway-listen', ssl: true, client_dn: '/CN=Test Server' },
    ]);
  });
});

test.each([
  ['an authority that did not sign it', `sslmode=verify-full&sslrootcert=FILES/stranger-ca.crt&${client}`],
  ['no authority of ours', `sslmode=verify-full&${client}`],
  ['no client certificate', 'sslmode=verify-full&sslrootcert=FILES/ca.crt'],
  [
    'a client certificate of a stranger',
    'sslmode=verify-full&sslrootcert=FILES/ca.crt&sslcert=FILES/stranger.crt&sslkey=FILES/stranger.key',
  ],
  ['no TLS', 'sslmode=disable'],
])('%s: not ready, and no session', async (_, query) => {
  const url = postgres.url(files(query));
  const gateway = await startUnreadyForTest({ database: { url, drop: forgetting } });
  const waiting = () => gateway.logs().filter(({ msg }) => msg === 'waiting for the database').length;
  await expect.poll(waiting).toBeGreaterThan(0);
  const ready = await httpClient(gateway.adminUrl).get('/readyz');
  expect(ready.status, ready.text).toBe(503);
  const [sessions] = await sql<{ open: number }>(
    postgres.adminUrl,
    "SELECT count(*)::integer AS open FROM pg_stat_activity WHERE usename = 'gateway'",
  );
  expect(sessions?.open).toBe(0);
});
