/** A replica that does not hear of key changes says so: in its gauge, and once in its log. */

import pg from 'pg';
import { expect, test } from 'vitest';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { startGateway } from '../harness/gateway/start-gateway.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';

let gateway: GatewayUnderTest;

async function gauge(): Promise<number | undefined> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const value = /^gw_key_changes_listening (\d)$/m.exec(text)?.[1];
  return value === undefined ? undefined : Number(value);
}

const lines = (): unknown[] =>
  gateway
    .logs()
    .map(({ msg }) => msg)
    .filter((msg) => /^key changes/.test(String(msg)));

const isReceived = 'key changes are received';
const notReceived = 'key changes are not received; accounts are read again within a second';

test('LISTEN that never works: 0, and one line with the reason', async () => {
  gateway = await startForTest({
    env: { DATABASE_DIRECT_URL: 'postgres://nobody:hunter2@127.0.0.1:1/none', GW_MIGRATE: 'off' },
  });
  await expect.poll(lines).toEqual([notReceived]);
  expect(await gauge()).toBe(0);
  const line = gateway.logs().find(({ msg }) => msg === notReceived);
  expect(line?.['reason']).toMatch(/ECONNREFUSED/);
  expect(gateway.output()).not.toContain('hunter2');
});

test('a connection that is lost and made anew: told at each change', async () => {
  gateway = await startForTest();
  await expect.poll(gauge).toBe(1);
  const admin = new pg.Client({ connectionString: gateway.database.url });
  await admin.connect();
  await admin.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE application_name = 'model-gateway-listen' AND datname = current_database()`,
  );
  await admin.end();
  await expect.poll(lines).toEqual([isReceived, notReceived, isReceived]);
  await expect.poll(gauge).toBe(1);
});

test.each([
  [
    'DATABASE_URL',
    'postgres://u:hunter2@db/x?sslmod=require',
    /^model-gateway serve: DATABASE_URL has a parameter/m,
  ],
  [
    'DATABASE_DIRECT_URL',
    'postgres://u:hunter2@db/x?sslcert=/a',
    /^model-gateway serve: DATABASE_DIRECT_URL has only/m,
  ],
  [
    'DATABASE_URL',
    'postgres://u:hunter2@db/x?sslmode=verify-full&sslrootcert=/nowhere',
    /^model-gateway serve: DATABASE_URL or DATABASE_DIRECT_URL names certificates .* \(ENOENT\)/m,
  ],
  [
    'REDIS_URL',
    'rediss://u:hunter2@cache/0?cacert=/nowhere',
    /^model-gateway serve: REDIS_URL names certificates .* \(ENOENT\)/m,
  ],
])('a %s that cannot be used stops the start with one line', async (name, url, line) => {
  await expect(startGateway({ env: { [name]: url } })).rejects.toThrow(line);
});
