/** What operators do over HTTP, on the admin port and for who holds the admin token: the commands' records, in JSON. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { runCommand } from '../commands/run-command.ts';
import { chatOk } from '../harness/gateway/chat.ts';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import type { HttpClient, HttpResponse } from '../harness/gateway/http-client.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { registerUser, registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { useReplica } from '../harness/gateway/use-replica.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';
import { sql } from '../harness/servers/fault-postgres.ts';
import { uuidPattern } from '../harness/vendors/wire-types.ts';

const token = 'an-admin-token-of-sufficient-length';
const gateway = useGateway({ env: { GW_ADMIN_TOKEN: token, GW_REGISTRATION: 'open' } });
const other = useReplica(gateway, { env: { GW_ADMIN_TOKEN: token, GW_REGISTRATION: 'closed' } });

const operator = (at: GatewayUnderTest = gateway): HttpClient => httpClient(at.adminUrl, token);
const patch = (path: string, body: unknown, at?: GatewayUnderTest): Promise<HttpResponse> =>
  operator(at).request('PATCH', path, { body });

/** The one JSON document of a command that succeeded. */
async function printed(...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await runCommand([...args, '--json'], {
    DATABASE_URL: gateway.database.url,
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

async function untilBothAnswer(key: string, status: number): Promise<number> {
  const startedAtMs = performance.now();
  for (const { url } of [gateway, other]) {
    const client = httpClient(url, key);
    await expect.poll(async () => (await client.get('/v1/models')).status, { interval: 1 }).toBe(status);
  }
  return performance.now() - startedAtMs;
}

describe('a user', () => {
  test('is registered by an operator where registration is closed, and by a command', async () => {
    const email = `${randomUUID()}@example.com`;
    expect((await httpClient(other.url).post('/v1/users', { email })).status).toBe(403);
    const made = await operator(other).post('/admin/users', { email });
    expect(made.status, made.text).toBe(201);
    const user = { user_id: expect.stringMatching(uuidPattern), email, shown_once: true };
    expect(made.json()).toEqual({ ...user, api_key: expect.stringMatching(/^gw_[0-9A-Za-z]{49}$/) });
    expect(made.headers['cache-control']).toBe('no-store');
    await untilBothAnswer(made.json<{ api_key: string }>().api_key, 200);
    expectError(await operator().post('/admin/users', { email: email.toUpperCase() }), {
      status: 409,
      type: 'conflict_error',
      param: 'email',
    });
    const byCommand = (await printed('users', 'add', `${randomUUID()}@example.com`)) as { api_key: string };
    expect(Object.keys(byCommand)).toEqual(Object.keys(made.json<object>()));
    await untilBothAnswer(byCommand.api_key, 200);
  });

  test('is shown by id and by e-mail address in any case, as the command shows it', async () => {
    const user = await registerWithKeys(gateway.url, ['openai']);
    const shown = await eventually(async () => {
      const now = await operator().get(`/admin/users/${user.id}`);
      // Its use is noted when there is time for it.
      return now.text.includes('"last_used_at":null') ? undefined : now;
    });
    expect(shown.json()).toEqual(await printed('users', 'show', user.id));
    for (const name of [user.id.toUpperCase(), encodeURIComponent(user.email.toUpperCase())])
      expect((await operator().get(`/admin/users/${name}`)).json()).toEqual(shown.json());
    for (const secret of [user.key.slice(3, 20), `sk-openai-${user.id}`])
      expect(shown.text).not.toContain(secret);
  });

  test.each([
    ['GET', '', undefined],
    ['PATCH', '', { disabled: true }],
    ['DELETE', '', undefined],
    ['POST', '/service-keys', {}],
    ['DELETE', `/service-keys/${randomUUID()}`, undefined],
  ])('that does not exist is 404: %s …%s', async (method, rest, body) => {
    for (const name of [
      randomUUID(),
      'nobody%40example.com',
      'a%2Fb',
      '%00%40x.example',
      "'%20OR%20true--",
      '..%2Fx',
    ]) {
      const response = await operator().request(method, `/admin/users/${name}${rest}`, { body });
      expectError(response, { status: 404, type: 'not_found_error', code: 'not_found' });
    }
  });

  test('gets another key, as the command makes one', async () => {
    const user = await registerUser(gateway.url);
    const made = await operator().post(`/admin/users/${user.email}/service-keys`, { label: 'recovery' });
    expect(made.status, made.text).toBe(201);
    const key = made.json<{ api_key: string; user_id: string; label: string }>();
    expect(key).toMatchObject({ user_id: user.id, label: 'recovery', shown_once: true });
    expect(Object.keys((await printed('users', 'new-key', user.id)) as object)).toEqual(Object.keys(key));
    await untilBothAnswer(key.api_key, 200);
    for (const [body, param] of [
      [{ label: 7 }, 'label'],
      [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
      [{ scope: 'all' }, 'scope'],
    ] as const)
      expectInvalid(await operator().post(`/admin/users/${user.id}/service-keys`, body), param);
  });

  test('loses a key, the last one too, on every replica within a second', async () => {
    const user = await registerUser(gateway.url);
    const stranger = await registerUser(gateway.url);
    await untilBothAnswer(user.key, 200);
    const shown = (await operator().get(`/admin/users/${user.id}`)).json<{
      service_keys: { id: string }[];
    }>();
    const [key] = shown.service_keys;
    const path = `/admin/users/${user.email}/service-keys`;
    for (const wrong of [
      `${path}/${randomUUID()}`,
      `${path}/x`,
      `/admin/users/${stranger.id}/service-keys/${key?.id}`,
    ])
      expectError(await operator().delete(wrong), {
        status: 404,
        type: 'not_found_error',
        code: 'not_found',
      });
    expect((await user.client.get('/v1/models')).status).toBe(200);
    const revoked = await operator().delete(`${path}/${key?.id.toUpperCase()}`);
    expect([revoked.status, revoked.text]).toEqual([204, '']);
    expectInTime(await untilBothAnswer(user.key, 401), 1_000);
    expect((await operator(other).delete(`${path}/${key?.id}`)).status).toBe(404);
  });
});

describe('a list of users', () => {
  test('is walked page by page, and holds what the command lists', async () => {
    for (let count = 0; count < 5; count += 1) await registerUser(gateway.url);
    const listed: unknown[] = [];
    let cursor: string | null = '';
    for (let pages = 0; cursor !== null; pages += 1) {
      expect(pages).toBeLessThan(100);
      const page = await operator().get(`/admin/users?limit=2${cursor && `&cursor=${cursor}`}`);
      const { data, next_cursor } = page.json<{ data: unknown[]; next_cursor: string | null }>();
      expect(data.length).toBeLessThanOrEqual(2);
      expect(next_cursor === null).toBe(data.length < 2);
      listed.push(...data);
      cursor = next_cursor;
    }
    const { stdout } = await runCommand(['users', 'list', '--json'], { DATABASE_URL: gateway.database.url });
    expect(listed).toEqual(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    );
  });

  test.each([
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=many', 'limit'],
    ['limit=1&limit=2', 'limit'],
    ['cursor=first', 'cursor'],
  ])('with %s is refused', async (query, param) => {
    expectInvalid(await operator().get(`/admin/users?${query}`), param);
  });
});

describe('a decision', () => {
  test('disables a user on every replica within a second, and enables it again', async () => {
    const user = await registerUser(gateway.url);
    await untilBothAnswer(user.key, 200);
    const disabled = await patch(`/admin/users/${user.id}`, { disabled: true });
    expect(disabled.json()).toMatchObject({ user_id: user.id, disabled_at: expect.any(String) });
    expectInTime(await untilBothAnswer(user.key, 401), 1_000);
    // Twice is once: it says since when.
    expect((await patch(`/admin/users/${user.email}`, { disabled: true }, other)).json()).toEqual(
      disabled.json(),
    );
    const enabled = await patch(`/admin/users/${user.id}`, { disabled: false }, other);
    expect(enabled.json()).toEqual(await printed('users', 'enable', user.id));
    expectInTime(await untilBothAnswer(user.key, 200), 1_000);
  });

  test('binds a user to India, and leaves alone what it does not name', async () => {
    const user = await registerWithKeys(gateway.url, ['openai']);
    await patch(`/admin/users/${user.id}`, { disabled: true });
    const bound = await patch(`/admin/users/${user.id}`, { residency: 'india' });
    expect(bound.json()).toMatchObject({ residency: 'india', disabled_at: expect.any(String) });
    const freed = await patch(`/admin/users/${user.id}`, { residency: null, disabled: false });
    expect(freed.json()).toMatchObject({ residency: null, disabled_at: null });
  });

  test('sets limits of a user, as the command does', async () => {
    const user = await registerUser(gateway.url);
    const limits = { streams: 3, budget_usd_per_day: '2.50', requests_per_minute: null };
    const limited = await patch(`/admin/users/${user.id}`, { limits });
    expect(limited.json()).toMatchObject({ limits });
    expect(limited.json()).toEqual(await printed('users', 'limits', user.id, '--streams', '3'));
    const back = { streams: 'default', budget_usd_per_day: 'default', requests_per_minute: 'default' };
    expect((await patch(`/admin/users/${user.id}`, { limits: back })).json()).toMatchObject({ limits: null });
  });

  test.each<[body: unknown, param: string | null]>([
    [{ limits: { streams: -1 } }, 'limits.streams'],
    [{ limits: { tokens: 1 } }, 'limits.tokens'],
    [{ limits: null }, 'limits'],
    [{ limits: {} }, 'limits'],
    [{ limits: {}, residency: 'india' }, 'limits'],
    [{ disabled: 'yes' }, 'disabled'],
    [{ disabled: null }, 'disabled'],
    [{ residency: 'mars' }, 'residency'],
    [{ disabled: true, email: 'x@example.com' }, 'email'],
    [{}, null],
    [[], null],
    ['{"disabled":', null],
    ['', null],
  ])('%j is refused, and decides nothing', async (body, param) => {
    const user = await registerUser(gateway.url);
    const shown = async () =>
      (await operator().get(`/admin/users/${user.id}`)).json<{ user: unknown }>().user;
    const before = await shown();
    expectInvalid(await patch(`/admin/users/${user.id}`, body), param);
    expect(await shown()).toEqual(before);
  });

  test('erases a user once', async () => {
    const user = await registerWithKeys(gateway.url, ['openai']);
    await untilBothAnswer(user.key, 200);
    const deleted = await operator().delete(`/admin/users/${user.id}`);
    expect([deleted.status, deleted.text]).toEqual([204, '']);
    expectInTime(await untilBothAnswer(user.key, 401), 1_000);
    expect((await operator(other).delete(`/admin/users/${user.id}`)).status).toBe(404);
    expect((await registerUser(gateway.url, user.email)).id).not.toBe(user.id);
  });
});

describe('spend', () => {
  test('is what the command prints', async () => {
    const user = await registerWithKeys(gateway.url, ['openai']);
    await chatOk(user.client);
    const report = await operator().get(
      '/admin/spend?from=2026-01-01T00:30:00%2B05:30&to=2999-01-01T00:00:01Z',
    );
    expect(report.json()).toMatchObject({
      from: '2025-12-31T19:00:00.000000Z',
      to: '2999-01-01T01:00:00.000000Z',
      users: expect.arrayContaining([expect.objectContaining({ user_id: user.id, requests: 1 })]),
      more: false,
    });
    const bounds = ['--from', '2026-01-01T00:30:00+05:30', '--to', '2999-01-01T00:00:01Z'];
    expect(report.json()).toEqual(await printed('spend', ...bounds));
    expect(
      (await operator().get('/admin/spend?from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59Z')).status,
    ).toBe(200);
    expect((await operator().get('/admin/spend?from=2026-01-01T00:00:00Z')).status).toBe(200);
  });

  test('that is asked for while another is made waits for it, however long that takes', async () => {
    const locker = sql(
      gateway.database.url,
      'DO $$ BEGIN LOCK TABLE request_rollups IN ACCESS EXCLUSIVE MODE; PERFORM pg_sleep(2); END $$',
    );
    const held =
      "SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = 'request_rollups'::regclass";
    await eventually(async () => (await sql(gateway.database.url, held)).length > 0 || undefined);
    const reports = await Promise.all(
      [1, 2, 3].map(() => operator().get('/admin/spend?from=2026-01-01T00:00:00Z')),
    );
    expect(reports.map(({ status }) => status)).toEqual([200, 200, 200]);
    await locker;
  });

  test.each([
    ['', 'from'],
    ['from=May', 'from'],
    ['from=2026-01-01', 'from'],
    ['from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z', 'to'],
    ['from=2026-02-01T00:00:00Z&to=2026-02-01T00:00:00Z', 'to'],
  ])('of ?%s is refused', async (query, param) => {
    expectInvalid(await operator().get(`/admin/spend?${query}`), param);
  });
});

test('the audit names what was decided and that it was an operator, by ids only', async () => {
  const email = `${randomUUID()}@example.com`;
  const made = (await operator().post('/admin/users', { email })).json<{
    user_id: string;
    api_key: string;
  }>();
  await operator().post(`/admin/users/${email}/service-keys`, { label: 'CANARY-LABEL' });
  await patch(`/admin/users/${email}`, { disabled: true, residency: 'india' });
  await patch(`/admin/users/${email}`, { disabled: false, residency: null, limits: { streams: 2 } });
  await operator().delete(`/admin/users/${email}`);
  const audited = () => gateway.logs().filter((line) => line['user_id'] === made.user_id);
  await expect
    .poll(() => audited().map((line) => line['audit']))
    .toEqual([
      'user_registered',
      'service_key_added',
      'user_disabled',
      'user_residency_bound',
      'user_enabled',
      'user_residency_freed',
      'user_limits_set',
      'user_deleted',
    ]);
  for (const line of audited()) {
    expect(line).toMatchObject({ by: 'admin', client_address: '127.0.0.1', request_id: expect.any(String) });
  }
  for (const hidden of [email, made.api_key, token, 'CANARY-LABEL'])
    expect(gateway.output()).not.toContain(hidden);
});
