/** Who came, which keys were added and deleted, and who was turned away: a line each, never a secret. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { AuthFailure } from '../../src/http/http-telemetry.ts';
import { AuditLog, refusalsPerWindow, refusalWindowMs } from '../../src/telemetry/audit-log.ts';
import { chat, chatOk } from '../harness/gateway/chat.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { addKey, registerUser } from '../harness/gateway/register.ts';
import { startForTest, useGateway } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { failure, hang, reset } from '../harness/vendors/vendor-plans.ts';

const gateway = useGateway({ env: { GW_LOG_LEVEL: 'trace' } });

const audited = (matches: (line: Record<string, unknown>) => boolean) =>
  gateway.logs().filter((line) => line['audit'] !== undefined && matches(line));

/** The one line of a request. */
async function lineOf(requestId: string): Promise<Record<string, unknown>> {
  const [line, ...more] = await eventually(async () => {
    const found = audited((candidate) => candidate['request_id'] === requestId);
    return found.length > 0 ? found : undefined;
  });
  expect(more).toEqual([]);
  expect(Date.parse(String(line?.['time']))).not.toBeNaN();
  const { time: _time, ...fields } = line ?? {};
  return fields;
}

describe('the audit line', () => {
  const shared = { level: 'info', msg: 'audit', client_address: '127.0.0.1' };

  test('of a registration names the user', async () => {
    const id = randomUUID();
    const email = `${randomUUID()}@example.com`;
    const response = await httpClient(gateway.url).post('/v1/users', { email }, { 'x-request-id': id });
    const { user_id: userId, api_key: key } = response.json<{ user_id: string; api_key: string }>();
    expect(await lineOf(id)).toEqual({
      ...shared,
      audit: 'user_registered',
      user_id: userId,
      request_id: id,
    });
    expect(gateway.output()).not.toContain(email);
    expect(gateway.output()).not.toContain(key);
  });

  test('of a key says whose it is, which one, and when it goes', async () => {
    const user = await registerUser(gateway.url);
    const secret = `sk-${randomUUID()}`;
    const body = { provider: 'anthropic', api_key: secret, label: 'CANARY-LABEL' };
    const [added, deleted] = [randomUUID(), randomUUID()];
    const response = await user.client.post('/v1/keys', body, { 'x-request-id': added });
    const { id: keyId } = response.json<{ id: string }>();
    const key = { ...shared, user_id: user.id, key_id: keyId, provider: 'anthropic' };
    expect(await lineOf(added)).toEqual({ ...key, audit: 'key_added', request_id: added });
    const path = `/v1/keys/${keyId.toUpperCase()}`;
    const gone = await user.client.request('DELETE', path, { headers: { 'x-request-id': deleted } });
    expect(gone.status).toBe(204);
    expect(await lineOf(deleted)).toEqual({ ...key, audit: 'key_deleted', request_id: deleted });
    for (const hidden of [secret, 'CANARY-LABEL']) expect(gateway.output()).not.toContain(hidden);
  });

  test.each<[reason: AuthFailure, authorization: Record<string, string>]>([
    ['missing', {}],
    ['malformed', { authorization: 'Bearer CANARY-TOKEN' }],
    ['malformed', { authorization: 'Basic CANARY-BASIC' }],
    ['unknown_key', { authorization: `Bearer gw_${'0'.repeat(43)}` }],
  ])('of a refusal (%s) says why', async (reason, authorization) => {
    const id = randomUUID();
    const stranger = await registerUser(gateway.url);
    // A key of the right form that nobody has any more.
    if (reason === 'unknown_key') {
      authorization = { authorization: `Bearer ${stranger.key}` };
      const { Client } = (await import('pg')).default;
      const database = new Client({ connectionString: gateway.database.url });
      await database.connect();
      await database.query('DELETE FROM service_keys WHERE user_id = $1', [stranger.id]);
      await database.end();
    }
    const headers = { ...authorization, 'x-request-id': id };
    expect((await httpClient(gateway.url).get('/v1/keys', headers)).status).toBe(401);
    expect(await lineOf(id)).toEqual({ ...shared, audit: 'authentication_refused', reason, request_id: id });
    expect(gateway.output()).not.toContain('CANARY');
    expect(gateway.output()).not.toContain(stranger.key);
  });

  test('is not written for what did not happen', async () => {
    const user = await registerUser(gateway.url);
    await user.client.post('/v1/keys', { provider: 'openai' });
    await user.client.delete(`/v1/keys/${randomUUID()}`);
    await httpClient(gateway.url).post('/v1/users', { email: user.email });
    await chatOkAndLogged(user);
    const events = audited((line) => line['user_id'] === user.id).map((line) => line['audit']);
    expect(events).toEqual(['user_registered', 'key_added']);
  });
});

/** A chat whose access line has been written, so that whatever came before it has been too. */
async function chatOkAndLogged(user: Awaited<ReturnType<typeof registerUser>>): Promise<void> {
  await addKey(user, { provider: 'openai', api_key: 'sk-x' });
  const id = randomUUID();
  await chatOk(user.client, {}, { 'x-request-id': id });
  await eventually(async () => gateway.logs().some((line) => line['request_id'] === id) || undefined);
}

test('the client address is one address, whatever a trusted proxy passes on', async () => {
  const behind = await startForTest({ env: { GW_TRUSTED_PROXY_HOPS: '1' }, database: gateway.database });
  const addressOf = async (forwarded: string) => {
    const id = randomUUID();
    const headers = { 'x-forwarded-for': forwarded, 'x-request-id': id };
    await httpClient(behind.url).get('/v1/keys', headers);
    const line = await eventually(async () => behind.logs().find((entry) => entry['request_id'] === id));
    return line['client_address'];
  };
  expect(await addressOf('203.0.113.9')).toBe('203.0.113.9');
  expect(await addressOf('198.51.100.1, 203.0.113.9:4711')).toBe('203.0.113.9');
  expect(await addressOf('2001:DB8::1')).toBe('2001:db8::1');
  expect(await addressOf('gw_CANARY')).toBe('unknown');
  expect(behind.output()).not.toContain('CANARY');
});

describe('refusals in a flood', () => {
  const asker = { requestId: 'r', clientAddress: '203.0.113.1' };
  function auditLog() {
    const lines: Record<string, unknown>[] = [];
    const due: { run: () => void; delayMs: number }[] = [];
    const clock = { nowMs: 1_000 };
    const log = new AuditLog({
      write: (fields) => void lines.push(fields),
      monotonicMs: () => clock.nowMs,
      later: (run, delayMs) => void due.push({ run, delayMs }),
    });
    const flood = (count: number) => {
      for (let index = 0; index < count; index += 1) log.refused('unknown_key', asker);
    };
    return { log, lines, due, clock, flood };
  }
  const leftOut = (count: number) => ({ audit: 'authentication_refused', left_out: count });

  test('are written up to a limit a minute; the rest is counted on a line when the minute is over', () => {
    const { lines, due, clock, flood } = auditLog();
    clock.nowMs += 10_000;
    flood(1);
    clock.nowMs += 1_000;
    flood(refusalsPerWindow + 99);
    expect(lines).toHaveLength(refusalsPerWindow);
    expect(due.map(({ delayMs }) => delayMs)).toEqual([refusalWindowMs - 1_000]);
    due[0]?.run();
    expect(lines.slice(refusalsPerWindow)).toEqual([leftOut(100)]);
    flood(1);
    expect(lines).toHaveLength(refusalsPerWindow + 2);
  });

  test('are counted once, whoever comes first: the next one, the timer or the end of the process', () => {
    const { log, lines, due, clock, flood } = auditLog();
    flood(refusalsPerWindow + 1);
    clock.nowMs += refusalWindowMs;
    flood(1);
    expect(lines.slice(refusalsPerWindow)).toEqual([
      leftOut(1),
      expect.objectContaining({ request_id: 'r' }),
    ]);
    due[0]?.run();
    log.reportLeftOut();
    expect(lines).toHaveLength(refusalsPerWindow + 2);
  });

  test('are counted anew when a minute is over, though its timer is late', () => {
    const { lines, due, clock, flood } = auditLog();
    flood(refusalsPerWindow + 1);
    clock.nowMs += refusalWindowMs;
    flood(refusalsPerWindow);
    due[0]?.run();
    flood(refusalsPerWindow);
    expect(lines.filter(({ left_out }) => left_out === undefined)).toHaveLength(2 * refusalsPerWindow);
  });

  test('within the limit need no further line', () => {
    const { log, lines, due, flood } = auditLog();
    flood(refusalsPerWindow);
    log.reportLeftOut();
    expect([lines.length, due.length]).toEqual([refusalsPerWindow, 0]);
  });
});

test('every line of the process is named in one way: snake_case, and the names of the access line', async () => {
  const user = await registerUser(gateway.url);
  await addKey(user, { provider: 'openai', api_key: 'sk-x' });
  // Every kind of line: audit, access, errors of ours, stores that leave, tables that cannot be used, drains.
  for (const script of [failure(500), reset, failure(429)]) {
    gateway.vendors.openai.script(script);
    await chat(user.client);
  }
  gateway.vendors.openai.script(hang);
  await chat(user.client, {}, { 'x-gateway-timeout': '1' });
  await gateway.writeTables('no: [tables');
  await eventually(async () => gateway.logs().some((line) => 'problem' in line) || undefined);
  const other = await startForTest({ env: { GW_LOG_LEVEL: 'trace', GW_MIGRATE: 'off' } });
  const owner = await registerUser(other.url);
  const brokenDatabase = new (await import('pg')).default.Client({ connectionString: other.database.url });
  await brokenDatabase.connect();
  await brokenDatabase.query('ALTER TABLE request_logs RENAME COLUMN mode TO renamed');
  const broken = await owner.client.get('/v1/logs', { 'x-request-id': 'broken' });
  expect(broken.status).toBe(500);
  await brokenDatabase.end();
  await other.stop();
  const lines = [...gateway.logs(), ...other.logs()];
  expect(lines.filter((line) => 'raw' in line)).toEqual([]);
  expect(lines.find((line) => line['level'] === 'error' && line['request_id'] === 'broken')).toBeDefined();
  const names = new Set(lines.flatMap((line) => Object.keys(line)));
  for (const name of names) expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
  for (const twin of ['req_id', 'request', 'user', 'id']) expect(names).not.toContain(twin);
});
