/** Too much work at once: refused in good form before the event loop starves, and over as soon as it ends. */
import { beforeAll, describe, expect, test } from 'vitest';
import { chat, chatBody, chatOk, chatPath } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import type { HttpResponse } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { startForTest, useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import type { Sent } from '../harness/ledgers/fault-load.ts';
import { sendChat } from '../harness/ledgers/fault-load.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectWithin, timed } from '../harness/measure/fault-bounds.ts';
import { metric, probe, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import { hang } from '../harness/vendors/vendor-plans.ts';

const overloaded = { status: 503, type: 'service_unavailable_error', code: 'overloaded' } as const;

async function start(env: Record<string, string>): Promise<{ running: GatewayUnderTest; user: User }> {
  const running = await startForTest({ env });
  return { running, user: await registerWithKeys(running.url, ['openai']) };
}

test.each([
  ['heap', 'GW_MAX_HEAP_BYTES'],
  ['memory', 'GW_MAX_MEMORY_BYTES'],
])(
  'a gateway beyond its limit of %s refuses with 503 and Retry-After while there is load',
  async (resource, name) => {
    const { running, user } = await start({ [name]: '1' });
    await untilPressed(running, resource);
    for (let round = 0; round < 5; round += 1) {
      expect((await chat(user.client)).status, 'one at a time').toBe(200);
    }
    expect((await user.client.get('/v1/stats')).status).toBe(200);
    const leaving = new AbortController();
    running.vendors.openai.script(...Array.from({ length: 7 }, () => hang));
    const waiting = Array.from({ length: 7 }, () =>
      user.client.request('POST', chatPath, { body: chatBody(), signal: leaving.signal }).catch(() => 'left'),
    );
    await eventually(async () => (await metric(running, 'gw_inflight_requests')) === 7 || undefined);
    const refused = await chat(user.client);
    expectError(refused, overloaded);
    expect(await metric(running, `gw_shed_requests_total\\{resource="${resource}"\\}`)).toBeGreaterThan(0);
    expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(refused.headers['x-should-retry'], 'clients may come back').not.toBe('false');
    const others = [
      user.client.get('/v1/logs'),
      user.client.post('/v1/users', { email: 'late@example.com' }),
    ];
    for (const response of await Promise.all(others)) expectError(response, overloaded);
    for (const path of ['/healthz', '/readyz', '/metrics']) expect(await probe(running, path)).toBe(200);
    leaving.abort();
    await Promise.all(waiting);
    await eventually(async () => (await chat(user.client)).status === 200 || undefined);
  },
);

/** The heap is looked at once a second. */
async function untilPressed(running: GatewayUnderTest, resource: string): Promise<void> {
  const name = `gw_pressure_ratio\\{resource="${resource}"\\}`;
  await eventually(async () => (await metric(running, name)) > 1 || undefined);
}

test('an overloaded event loop refuses what it cannot serve, stays alive, and recovers by itself', async () => {
  const { running, user } = await start({ GW_MAX_EVENT_LOOP_DELAY_MS: '20' });
  const sent: Sent[] = [];
  // About a megabyte each, to be parsed, checked, translated and sent on.
  const messages = Array.from({ length: 8_000 }, () => ({ role: 'user', content: 'z'.repeat(100) }));
  let over = false;
  const work = async (): Promise<void> => {
    while (!over) {
      sent.push(await sendChat(running.url, user, { body: { messages } }));
    }
  };
  const workers = Array.from({ length: 16 }, work);
  const probes: number[] = [];
  const refused = () => sent.filter((one) => one.status === 503);
  try {
    await eventually(async () => {
      probes.push(await timed(async () => expect(await probe(running, '/healthz')).toBe(200)));
      return refused().length >= 5 || undefined;
    });
  } finally {
    over = true;
    await Promise.all(workers);
  }
  const recovery = timed(() =>
    eventually(async () => (await chat(user.client)).status === 200 || undefined, 10_000),
  );
  expectWithin('served again after the overload', await recovery, 2_000);
  expectWithin('slowest /healthz under overload', Math.max(...probes), 1_000);
  for (const one of refused()) expect(one.text).toContain('"code":"overloaded"');
  expect(sent.filter((one) => one.status !== 200 && one.status !== 503)).toEqual([]);
  await untilRowsStored(running);
  const served = sent.filter((one) => one.status === 200).length;
  const rows = (await user.client.get('/v1/logs?limit=1000')).json<{ data: unknown[] }>().data;
  expect(rows, 'a row for each that was served, none for the refused').toHaveLength(served + 1);
  expect(running.vendors.ledger()).toHaveLength(served + 1);
});

describe('a request made to be expensive', () => {
  const head = '{"model":"gw/balanced","messages":[{"role":"user","content":"hi"}]';
  const many = (count: number, write: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => write(index)).join(',');

  const lag = 'nodejs_eventloop_lag_max_seconds';
  const shared = useGateway();
  const user = useUser(shared, ['openai']);

  beforeAll(() => chatOk(user.client));

  test.each<[string, () => string]>([
    ['250,000 bad messages', () => `{"model":"gw/balanced","messages":[${many(250_000, () => '{}')}]}`],
    ['60,000 unknown fields', () => `${head},${many(60_000, (index) => `"k${index}":1`)}}`],
    ['10,000 stop sequences', () => `${head},"stop":[${many(10_000, (index) => `"s${index}"`)}]}`],
    ['100,000 levels', () => `${head},"tools":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['a field name of 1 MB', () => `${head},"${'k'.repeat(1_000_000)}":1}`],
    ['a model name of 1 MB', () => JSON.stringify(chatBody({ model: 'm'.repeat(1_000_000) }))],
  ])('(%s) is refused in a few words, without a stall', async (name, write) => {
    const body = write();
    let response: HttpResponse | undefined;
    const stallsMs: number[] = [];
    // Thrice, since whatever else the machine does can only add to it.
    for (let round = 0; round < 3; round += 1) {
      await metric(shared, lag); // begins a new interval
      response = await user.client.post(chatPath, body);
      stallsMs.push((await metric(shared, lag)) * 1000);
    }
    expectWithin(`stall by ${name}`, Math.min(...stallsMs), 50);
    expectError(response as HttpResponse, { status: 422, type: 'invalid_request_error' });
    expect(Buffer.byteLength(response?.text ?? '')).toBeLessThanOrEqual(2048);
    expect(shared.vendors.ledger()).toEqual([]);
  });
});
