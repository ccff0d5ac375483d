/** The comparison of ledgers must see what it is there to see. */
import { beforeEach, expect, test } from 'vitest';
import type { User } from '../gateway/register.ts';
import { registerWithKeys } from '../gateway/register.ts';
import { useGateway } from '../gateway/use-gateway.ts';
import { untilRowsStored } from '../measure/fault-metrics.ts';
import { sql } from '../servers/fault-postgres.ts';
import { expectLedgersAgree } from './fault-ledgers.ts';
import type { Sent } from './fault-load.ts';
import { sendChat } from './fault-load.ts';

const gateway = useGateway();
let user: User;
let sent: Sent[];

beforeEach(async () => {
  user = await registerWithKeys(gateway.url, ['openai']);
  sent = [];
  for (const stream of [false, true, false]) sent.push(await sendChat(gateway.url, user, { stream }));
  await untilRowsStored(gateway);
});

function compare(): Promise<void> {
  const { database, vendors } = gateway;
  return expectLedgersAgree({ databaseUrl: database.url, vendors, sent, users: [user] });
}

/** Changes rows of the first request behind the gateway's back. */
function tamper(statement: string): Promise<unknown> {
  return sql(gateway.database.url, statement, [sent[0]?.id]);
}

test('ledgers that agree pass', compare);

test('a lost row is found', async () => {
  await tamper('DELETE FROM request_logs WHERE request_id = $1');
  await expect(compare()).rejects.toThrow('whole answers without a row');
});

test('a doubled row is found', async () => {
  await tamper('UPDATE request_logs SET request_id = $1 WHERE request_id <> $1');
  await expect(compare()).rejects.toThrow('requests with more than one row');
});

test('a row of a request that nobody sent is found', async () => {
  sent.pop();
  await expect(compare()).rejects.toThrow('rows of requests that nobody sent');
});

test('a call that was made twice is found', async () => {
  const [first] = gateway.vendors.openai.ledger;
  if (first !== undefined) gateway.vendors.openai.ledger.push(first);
  await expect(compare()).rejects.toThrow('rows whose attempts differ from the calls');
});

test('a wrong status is found', async () => {
  await tamper("UPDATE request_logs SET status = 'error' WHERE request_id = $1");
  await expect(compare()).rejects.toThrow('whole answers whose row is no success');
});

test('a wrong sum is found', async () => {
  // Some are summed up already, others wait.
  await tamper('DELETE FROM unsummed_requests WHERE $1::text IS NOT NULL');
  await tamper('UPDATE request_rollups SET requests = requests + 1 WHERE $1::text IS NOT NULL');
  await expect(compare()).rejects.toThrow('the hourly sums count every row once');
});
