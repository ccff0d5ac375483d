/** What operators decide for users, as commands on the database; gateways on it heed them within a second. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { chat } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import type { HttpClient } from '../harness/gateway/http-client.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerUser, registerWithKeys } from '../harness/gateway/register.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { useReplica } from '../harness/gateway/use-replica.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';
import { untilRowsStored } from '../harness/measure/fault-metrics.ts';
import type { Ended } from './run-command.ts';
import { runOnDatabase } from './run-command.ts';

const gateway = useGateway();
const other = useReplica(gateway);

const operate = (...args: string[]): Promise<Ended> => runOnDatabase(gateway.database, args);

/** The one JSON document of a command that succeeded. */
async function read<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await operate(...args, '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as T;
}

const onBoth = (key: string): HttpClient[] => [gateway, other].map(({ url }) => httpClient(url, key));

/** Milliseconds until both replicas answer so. */
async function untilBothAnswer(key: string, status: number): Promise<number> {
  const startedAtMs = performance.now();
  for (const client of onBoth(key))
    await expect.poll(async () => (await client.get('/v1/models')).status, { interval: 1 }).toBe(status);
  return performance.now() - startedAtMs;
}

interface Shown {
  readonly service_keys: readonly { last_used_at: string | null }[];
}

describe('users', () => {
  test('are listed, one object per line, none left out', async () => {
    const users = await Promise.all(Array.from({ length: 5 }, () => registerUser(gateway.url)));
    const { code, stdout } = await operate('users', 'list', '--json');
    expect(code).toBe(0);
    const listed = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { user_id: string });
    for (const { id, email } of users) {
      expect(listed).toContainEqual({
        user_id: id,
        email,
        created_at: expect.any(String),
        disabled_at: null,
        residency: null,
        limits: null,
        service_keys: 1,
        provider_keys: 0,
      });
    }
    const table = (await operate('users', 'list')).stdout.split('\n');
    expect(table).toHaveLength(listed.length + 2);
    for (const { id, email } of users) expect(table.find((line) => line.startsWith(id))).toContain(email);
  });

  test('are shown by id and by e-mail address in any case, without anything secret', async () => {
    const user = await registerWithKeys(gateway.url, ['openai']);
    const shown = await eventually(async () => {
      const now = await read<Shown>('users', 'show', user.email.toUpperCase());
      // Its use is noted when there is time for it.
      return now.service_keys.some(({ last_used_at }) => last_used_at === null) ? undefined : now;
    });
    expect(shown).toEqual(await read('users', 'show', user.id));
    expect(shown).toMatchObject({
      user: { user_id: user.id, provider_keys: 1 },
      service_keys: [{ label: null }],
      provider_keys: [{ provider: 'openai' }],
    });
    const text = (await operate('users', 'show', user.id)).stdout + JSON.stringify(shown);
    expect(text).toContain('openai');
    expect(text).toMatch(/\nservice key +label +created_at +expires_at +last_used_at\n[\w-]{36} {2}- {2}/);
    expect(text).toMatch(
      /\nprovider key +provider +label +base_url +declared_region\n[\w-]{36} {2}openai {2}/,
    );
    for (const secret of [user.key.slice(3, 20), `sk-openai-${user.id}`]) expect(text).not.toContain(secret);
  });

  test.each([['show'], ['disable'], ['enable'], ['delete'], ['new-key'], ['revoke-key', randomUUID()]])(
    'that do not exist: %s says so, with exit code 66',
    async (command, ...rest) => {
      for (const who of [randomUUID(), 'nobody@example.com', "' OR true --"]) {
        const { code, stdout, stderr } = await operate('users', command, who, ...rest);
        expect({ code, stdout }).toEqual({ code: 66, stdout: '' });
        expect(stderr).toBe(`model-gateway users ${command}: there is no user ${who}\n`);
      }
    },
  );
});

describe('a disabled user', () => {
  test('is refused by every replica within a second, and let in again', async () => {
    const user = await registerUser(gateway.url);
    await untilBothAnswer(user.key, 200);
    expect(await read('users', 'disable', user.id)).toMatchObject({ disabled_at: expect.any(String) });
    expectInTime(await untilBothAnswer(user.key, 401), 1_000);
    for (const client of onBoth(user.key)) {
      expectError(await client.get('/v1/models'), {
        status: 401,
        type: 'authentication_error',
        code: 'user_disabled',
      });
    }
    expect(await read('users', 'enable', user.email)).toMatchObject({ disabled_at: null });
    expectInTime(await untilBothAnswer(user.key, 200), 1_000);
  });
});

describe('limits of a user', () => {
  test('are exceptions, set one by one, and taken back to what the tables say', async () => {
    const { id, email } = await registerUser(gateway.url);
    const set = (...options: string[]) => read<object>('users', 'limits', email, ...options);
    expect(await set('--requests-per-minute', '600', '--streams', 'none')).toMatchObject({
      user_id: id,
      limits: { requests_per_minute: 600, streams: null },
    });
    await set('--budget-usd-per-day', '2.50', '--streams', 'default');
    expect(await read('users', 'show', id)).toMatchObject({
      user: { limits: { requests_per_minute: 600, budget_usd_per_day: '2.50' } },
    });
    expect((await operate('users', 'show', id)).stdout).toContain(
      'limits: requests_per_minute 600, budget_usd_per_day 2.50; the rest as the tables say',
    );
    expect(await set('--requests-per-minute', 'default', '--budget-usd-per-day', 'default')).toMatchObject({
      limits: null,
    });
  });

  test.each([
    [[], 'name a limit: --requests-per-minute'],
    [['--streams', '0'], 'It must be a whole number from 1'],
    [['--tokens-per-minute', '1.5'], 'It must be a whole number from 1'],
    [['--budget-usd-per-month', '0.0000001'], 'It must be dollars above 0'],
    [['--budget-usd-per-month', '-1'], 'It must be dollars above 0'],
  ])('are refused with %j', async (options, said) => {
    const user = await registerUser(gateway.url);
    const { code, stderr } = await operate('users', 'limits', user.id, ...options);
    expect(code).toBe(64);
    expect(stderr).toContain(said);
    expect(await read('users', 'show', user.id)).toMatchObject({ user: { limits: null } });
  });
});

describe('a new key', () => {
  test('lets a user in again who has lost the old one', async () => {
    const user = await registerUser(gateway.url);
    const { stdout } = await operate(
      'users',
      'new-key',
      user.email,
      '--label',
      'recovery',
      '--expires',
      '2999-01-01',
    );
    const key = stdout.trim();
    expect(key).toMatch(/^gw_[0-9A-Za-z]{49}$/);
    const keys = (await httpClient(other.url, key).get('/v1/service-keys')).json<object[]>();
    expect(keys).toMatchObject([
      { current: false },
      { current: true, label: 'recovery', expires_at: '2999-01-01T00:00:00.000000Z' },
    ]);
    expect(await read('users', 'new-key', user.id)).toMatchObject({ user_id: user.id, shown_once: true });
  });

  test.each([
    [['--label', 'x'.repeat(129)], '--label may have at most 128 characters'],
    [['--expires', '2020-01-01'], '--expires lies in the past'],
    [['--expires', 'soon'], 'It must be a date'],
  ])('with %j is refused', async (options, said) => {
    const user = await registerUser(gateway.url);
    const { code, stderr } = await operate('users', 'new-key', user.id, ...options);
    expect(code).toBe(64);
    expect(stderr).toContain(said);
  });
});

interface NewKey {
  readonly id: string;
  readonly api_key: string;
}

describe('a revoked key', () => {
  test('is refused by every replica within a second, also where it is the last one', async () => {
    const user = await registerUser(gateway.url);
    const { id, api_key } = await read<NewKey>('users', 'new-key', user.id);
    for (const key of [user.key, api_key]) await untilBothAnswer(key, 200);
    expect(await read('users', 'revoke-key', user.email, id.toUpperCase())).toEqual({
      user_id: user.id,
      id,
      revoked: true,
    });
    expectInTime(await untilBothAnswer(api_key, 401), 1_000);
    for (const client of onBoth(user.key)) expect((await client.get('/v1/models')).status).toBe(200);
    const { service_keys: left } = await read<{ service_keys: { id: string }[] }>('users', 'show', user.id);
    expect(left).toHaveLength(1);
    const last = await operate('users', 'revoke-key', user.id, left[0]?.id ?? '');
    expect(last).toEqual({ code: 0, stdout: `${left[0]?.id} is revoked\n`, stderr: '' });
    expectInTime(await untilBothAnswer(user.key, 401), 1_000);
    const again = (await operate('users', 'new-key', user.id)).stdout.trim();
    await untilBothAnswer(again, 200);
  });

  test("must be the user's own", async () => {
    const [user, other] = [await registerUser(gateway.url), await registerUser(gateway.url)];
    const { id, api_key } = await read<NewKey>('users', 'new-key', other.id);
    for (const named of [id, randomUUID(), 'x', "' OR true --"]) {
      const { code, stderr } = await operate('users', 'revoke-key', user.id, named);
      expect({ code, stderr }).toEqual({
        code: 66,
        stderr: `model-gateway users revoke-key: the user has no service key ${named}\n`,
      });
    }
    await untilBothAnswer(api_key, 200);
  });
});

interface Spend {
  readonly from: string;
  readonly to: string;
  readonly users: readonly { user_id: string; email: string | null; requests: number; cost_usd: string }[];
}

describe('a deleted user', () => {
  let user: User;

  test('is unknown everywhere within a second; its sums stay, its e-mail address is free', async () => {
    user = await registerWithKeys(gateway.url, ['openai']);
    expect((await chat(user.client)).status).toBe(200);
    await untilRowsStored(gateway);
    const sums = (await user.client.get('/v1/stats')).json<{ totals: { cost_usd: string } }>();
    await untilBothAnswer(user.key, 200);
    expect(await read('users', 'delete', user.email)).toEqual({ user_id: user.id, deleted: true });
    expectInTime(await untilBothAnswer(user.key, 401), 1_000);
    const { stdout } = await operate('users', 'list', '--json');
    expect(stdout).not.toContain(user.email);
    const spend = await read<Spend>('spend', '--from', '2026-01-01');
    expect(spend.users).toContainEqual(
      expect.objectContaining({ user_id: user.id, email: null, requests: 1, cost_usd: sums.totals.cost_usd }),
    );
    const again = await registerUser(gateway.url, user.email);
    expect(again.id).not.toBe(user.id);
  });
});

describe('spend', () => {
  test('is what statistics say, for each user, those who spent most first', async () => {
    const [little, much] = [
      await registerWithKeys(gateway.url, ['openai']),
      await registerWithKeys(gateway.url, ['openai']),
    ];
    for (const user of [little, much, much]) expect((await chat(user.client)).status).toBe(200);
    await untilRowsStored(gateway);
    const { users, from, to } = await read<Spend>('spend', '--from', '2026-01-01T00:30:00+05:30');
    expect(from).toBe('2025-12-31T19:00:00.000000Z');
    expect(Date.parse(to)).toBeGreaterThan(Date.now());
    const ours = users.filter(({ user_id }) => [little.id, much.id].includes(user_id));
    expect(ours.map(({ user_id, email, requests }) => [user_id, email, requests])).toEqual([
      [much.id, much.email, 2],
      [little.id, little.email, 1],
    ]);
    const { totals } = (await much.client.get('/v1/stats')).json<{ totals: { cost_usd: string } }>();
    expect(ours[0]?.cost_usd).toBe(totals.cost_usd);
    const text = (await operate('spend', '--from', '2026-01-01')).stdout;
    expect(text).toContain(much.email);
  });

  test('of a period without requests is empty, and a wrong one is named', async () => {
    expect(await read<Spend>('spend', '--from', '2020-01-01', '--to', '2020-02-01')).toEqual({
      from: '2020-01-01T00:00:00.000000Z',
      to: '2020-02-01T00:00:00.000000Z',
      users: [],
      more: false,
    });
    for (const args of [['--from', '2020-02-01', '--to', '2020-01-01'], ['--from', 'May'], []]) {
      expect((await operate('spend', ...args)).code).toBe(64);
    }
  });
});
