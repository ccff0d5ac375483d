/** Service keys of one user: several, with names and ends; rotated without a gap, revoked everywhere at once. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import type { HttpClient } from '../harness/gateway/http-client.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerUser } from '../harness/gateway/register.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { useReplica } from '../harness/gateway/use-replica.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';
import { uuidPattern } from '../harness/vendors/wire-types.ts';

interface ServiceKey {
  readonly id: string;
  readonly label: string | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly current: boolean;
}
interface NewServiceKey extends ServiceKey {
  readonly api_key: string;
  readonly shown_once: true;
}

const gateway = useGateway();
const other = useReplica(gateway);

async function make(client: HttpClient, body: object = {}): Promise<NewServiceKey> {
  const response = await client.post('/v1/service-keys', body);
  expect(response.status, response.text).toBe(201);
  return response.json<NewServiceKey>();
}

const list = async (client: HttpClient): Promise<ServiceKey[]> =>
  (await client.get('/v1/service-keys')).json<ServiceKey[]>();

const unknownKey = { status: 401, type: 'authentication_error', code: 'invalid_api_key' };
const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();

/** Asks as fast as it is answered until the key is refused once; statuses of everything after that. */
async function askUntilRefused(clients: readonly HttpClient[]): Promise<void> {
  await Promise.all(
    clients.map((client) =>
      expect.poll(async () => (await client.get('/v1/models')).status, { interval: 1 }).toBe(401),
    ),
  );
}

describe('a new service key', () => {
  test('is shown once, with exactly these fields', async () => {
    const user = await registerUser(gateway.url);
    const made = await make(user.client, { label: 'ci', expires_at: '2999-01-01T00:00:00+05:30' });
    expect(made).toEqual({
      id: expect.stringMatching(uuidPattern),
      label: 'ci',
      created_at: expect.stringMatching(/Z$/),
      expires_at: '2998-12-31T18:30:00.000000Z',
      last_used_at: null,
      current: false,
      api_key: expect.stringMatching(/^gw_[0-9A-Za-z]{49}$/),
      shown_once: true,
    });
    const { api_key: _shown, shown_once: _once, ...record } = made;
    expect(await list(user.client)).toEqual([
      expect.objectContaining({ label: null, expires_at: null, current: true }),
      record,
    ]);
    const byItself = await list(httpClient(other.url, made.api_key));
    expect(byItself.map(({ current }) => current)).toEqual([false, true]);
  });

  test.each([
    [{ label: 'x'.repeat(129) }, 'label'],
    [{ label: 'line\nbreak' }, 'label'],
    [{ label: 7 }, 'label'],
    [{ expires_at: 'tomorrow' }, 'expires_at'],
    [{ expires_at: '2999-01-01T00:00:00' }, 'expires_at'],
    [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [{ expires_at: '10000-01-01T00:00:00Z' }, 'expires_at'],
    [{ scope: 'all' }, 'scope'],
    [[], null],
  ])('%j is refused', async (body, param) => {
    const user = await registerUser(gateway.url);
    expectInvalid(await user.client.post('/v1/service-keys', body), param);
    expect(await list(user.client)).toHaveLength(1);
  });

  test.each(['2255-06-05T23:47:34.740993Z', '9999-12-31T23:59:59.999999Z'])(
    'may end as late as %s, to the microsecond',
    async (expires_at) => {
      const user = await registerUser(gateway.url);
      const made = await make(user.client, { expires_at });
      expect(made.expires_at).toBe(expires_at);
      expect((await list(user.client)).map((key) => key.expires_at)).toEqual([null, expires_at]);
    },
  );

  test('is one of twenty at most, however they are asked for', async () => {
    const user = await registerUser(gateway.url);
    const asked = [];
    for (let batch = 0; batch < 5; batch += 1) {
      asked.push(
        ...(await Promise.all(Array.from({ length: 5 }, () => user.client.post('/v1/service-keys', {})))),
      );
    }
    expect(asked.filter(({ status }) => status === 201)).toHaveLength(19);
    for (const refused of asked.filter(({ status }) => status !== 201)) {
      expectError(refused, { status: 422, type: 'invalid_request_error', code: 'too_many_service_keys' });
    }
    expect(await list(user.client)).toHaveLength(20);
  });

  test('and its hash are in no log', async () => {
    const user = await registerUser(gateway.url);
    const made = await make(user.client, { label: 'quiet' });
    await user.client.delete(`/v1/service-keys/${made.id}`);
    const audited = (audit: string) => () =>
      gateway.logs().find((line) => line['audit'] === audit && line['key_id'] === made.id);
    await expect.poll(audited('service_key_added')).toMatchObject({ user_id: user.id });
    await expect.poll(audited('service_key_deleted')).toMatchObject({ user_id: user.id });
    expect(gateway.output()).not.toContain(made.api_key.slice(3));
    const client = new pg.Client({ connectionString: gateway.database.url });
    await client.connect();
    const { rows } = await client.query("SELECT encode(key_hash, 'hex') AS hash FROM service_keys");
    await client.end();
    for (const { hash } of rows as { hash: string }[]) expect(gateway.output()).not.toContain(hash);
  });
});

describe('an end', () => {
  test('makes a key unknown, on every replica, and frees its place', async () => {
    const user = await registerUser(gateway.url);
    const made = await make(user.client, { expires_at: new Date(Date.now() + 3_000).toISOString() });
    const clients = [gateway, other].map(({ url }) => httpClient(url, made.api_key));
    await askUntilRefused(clients);
    // A replica is early by as long as reading the key took.
    expect(Date.now()).toBeGreaterThan(Date.parse(made.expires_at ?? '') - 1_000);
    for (const client of clients) expectError(await client.get('/v1/models'), unknownKey);
    expect((await list(user.client)).map(({ id }) => id)).toContain(made.id);
    await make(user.client);
    expect((await list(user.client)).map(({ id }) => id)).not.toContain(made.id);
  });
});

describe('a deletion', () => {
  test('is 404 for what is not there, is no id, or belongs to somebody else, who keeps it', async () => {
    const [user, stranger] = [await registerUser(gateway.url), await registerUser(gateway.url)];
    const theirs = await make(stranger.client);
    for (const id of [randomUUID(), 'x', `{${theirs.id}}`, theirs.id]) {
      const response = await user.client.delete(`/v1/service-keys/${encodeURIComponent(id)}`);
      expectError(response, { status: 404, type: 'not_found_error' });
    }
    expect(await list(stranger.client)).toHaveLength(2);
    expect(await list(user.client)).toHaveLength(1);
  });

  test('of the only live key is refused: an expired one beside it does not count', async () => {
    const user = await registerUser(gateway.url);
    const [only] = await list(user.client);
    const lastKey = { status: 409, type: 'conflict_error', code: 'last_service_key' };
    expectError(await user.client.delete(`/v1/service-keys/${only?.id}`), lastKey);
    const brief = await make(user.client, { expires_at: new Date(Date.now() + 2_000).toISOString() });
    await askUntilRefused([httpClient(gateway.url, brief.api_key)]);
    // A replica is early by as long as reading the key took; what is live is for Postgres to say.
    await expect.poll(() => Date.now()).toBeGreaterThan(Date.parse(brief.expires_at ?? ''));
    expectError(await user.client.delete(`/v1/service-keys/${only?.id}`), lastKey);
    expect((await user.client.delete(`/v1/service-keys/${brief.id.toUpperCase()}`)).status).toBe(204);
    expect((await user.client.get('/v1/models')).status).toBe(200);
  });

  test('of the key that asks is answered, and it is dead', async () => {
    const user = await registerUser(gateway.url);
    const second = await make(user.client, { expires_at: inAnHour() });
    const [first] = await list(user.client);
    expect((await user.client.delete(`/v1/service-keys/${first?.id}`)).status).toBe(204);
    expectError(await user.client.get('/v1/models'), unknownKey);
    expect((await httpClient(gateway.url, second.api_key).get('/v1/models')).status).toBe(200);
  });
});

interface Asked {
  readonly startedAtMs: number;
  readonly status: number;
}

/** Asks both replicas with a key, `lanes` at a time, until it is told to stop; everything that was answered. */
function askOn(key: string, lanes: number, stop: AbortSignal): Promise<Asked[]> {
  const asked: Asked[] = [];
  const lane = async (index: number): Promise<void> => {
    const client = httpClient(index % 2 === 0 ? gateway.url : other.url, key);
    while (!stop.aborted) {
      const startedAtMs = performance.now();
      const { status } = await client.get('/v1/models');
      asked.push({ startedAtMs, status });
    }
  };
  return Promise.all(Array.from({ length: lanes }, (_, index) => lane(index))).then(() => asked);
}

/** Lanes that are answered within 50 ms ask 300 times a second. */
const lanes = 16;
const warmRequests = 200;

async function underLoad(key: string, act: (warm: () => Promise<void>) => Promise<void>): Promise<Asked[]> {
  const stop = new AbortController();
  const asking = askOn(key, lanes, stop.signal);
  const client = httpClient(other.url, key);
  try {
    await act(async () => {
      for (let request = 0; request < warmRequests / lanes; request += 1) await client.get('/v1/models');
    });
  } finally {
    stop.abort();
  }
  return asking;
}

describe('two replicas under load', () => {
  let user: User;

  test('refuse a revoked key within a second of the 204, and never again let it in', async () => {
    user = await registerUser(gateway.url);
    const second = await make(user.client);
    let revokedAtMs = 0;
    let refusedAtMs = 0;
    const asked = await underLoad(second.api_key, async (warm) => {
      await warm();
      expect((await user.client.delete(`/v1/service-keys/${second.id}`)).status).toBe(204);
      revokedAtMs = performance.now();
      await askUntilRefused([gateway, other].map(({ url }) => httpClient(url, second.api_key)));
      refusedAtMs = performance.now();
      await warm();
    });
    expectInTime(refusedAtMs - revokedAtMs, 1_000);
    expect(asked.length).toBeGreaterThan(lanes);
    const afterwards = asked.filter(({ startedAtMs }) => startedAtMs > refusedAtMs);
    expect(afterwards.length).toBeGreaterThan(0);
    expect(new Set(afterwards.map(({ status }) => status))).toEqual(new Set([401]));
    expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([200, 401]));
  });

  test('serve without a gap while a key is rotated', async () => {
    user = await registerUser(gateway.url);
    const [old] = await list(user.client);
    const next = await make(user.client);
    const asked = await underLoad(next.api_key, async (warm) => {
      await warm();
      const client = httpClient(other.url, next.api_key);
      expect((await client.delete(`/v1/service-keys/${old?.id}`)).status).toBe(204);
      await askUntilRefused([gateway, other].map(({ url }) => httpClient(url, user.key)));
    });
    expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([200]));
  });
});
