/** The spool fills up, is torn, outlives its process: rows are kept, or new work is refused, never lost in silence. */
import { appendFile, readdir, readFile, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { World } from '../harness/gateway/fault-world.ts';
import { endBy, makeWorld } from '../harness/gateway/fault-world.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { expectLedgersAgree } from '../harness/ledgers/fault-ledgers.ts';
import type { Sent } from '../harness/ledgers/fault-load.ts';
import { becomeKnown, failures, sendChat } from '../harness/ledgers/fault-load.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { metric, untilReadyIs, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import type { CrashablePostgres } from '../harness/servers/fault-postgres.ts';
import { sql, startCrashablePostgres } from '../harness/servers/fault-postgres.ts';
import { heldStream } from '../harness/vendors/vendor-plans.ts';
import { gate } from '../harness/vendors/vendor-reply.ts';

/** A few dozen rows. */
const spoolBytes = 48 * 1024;

let postgres: CrashablePostgres;
let world: World;
let gateway: GatewayUnderTest | undefined;

beforeAll(async () => {
  postgres = await startCrashablePostgres();
  world = await makeWorld(postgres.database);
});

afterEach(async () => {
  await postgres.restore();
  await gateway?.stop();
  world.vendors.clear();
});

afterAll(async () => {
  await world.close();
  await postgres.close();
});

/** A gateway that has one user in memory, and a Postgres that is gone. */
async function cutOff(
  env: Record<string, string>,
  sent: Sent[],
): Promise<{ running: GatewayUnderTest; user: User }> {
  const running = await world.start(env);
  gateway = running;
  await untilReadyIs(running, 200);
  const user = await registerWithKeys(world.url, ['openai']);
  sent.push(...(await becomeKnown(world.url, user)));
  await postgres.kill();
  return { running, user };
}

async function expectNothingLost(
  running: GatewayUnderTest,
  sent: readonly Sent[],
  user: User,
): Promise<void> {
  await untilRowsStored(running);
  const { database, vendors } = world;
  await expectLedgersAgree({ databaseUrl: database.url, vendors, sent, users: [user] });
}

test('a full spool refuses new chats; running ones finish, and all is well once Postgres is back', async () => {
  const sent: Sent[] = [];
  const opening = gate();
  const { running, user } = await cutOff({ GW_SPOOL_BYTES: String(spoolBytes) }, sent);
  world.vendors.openai.when('held', heldStream(opening));
  const held = [1, 2, 3].map(() => sendChat(world.url, user, { stream: true, say: 'held' }));
  await eventually(async () => (await metric(running, 'gw_inflight_streams')) === held.length || undefined);
  const refused = await eventually(async () => {
    const one = await sendChat(world.url, user);
    sent.push(one);
    return one.status === 200 ? undefined : one;
  });
  expect(refused.status, refused.text).toBe(503);
  expect(JSON.parse(refused.text)).toMatchObject({
    error: { type: 'service_unavailable_error', code: 'log_full' },
  });
  expect(sent.length, 'a dozen rows found room').toBeGreaterThan(12);
  opening.open();
  const streams = await Promise.all(held);
  expect(failures(streams)).toEqual([]);
  sent.push(...streams);
  expect(await metric(running, 'gw_log_spool_bytes')).toBeLessThanOrEqual(spoolBytes);
  expect(await metric(running, 'gw_log_rows_dropped_total')).toBe(0);
  await postgres.start();
  await eventually(async () => {
    const one = await sendChat(world.url, user);
    sent.push(one);
    return one.status === 200 || undefined;
  });
  await expectNothingLost(running, sent, user);
});

test('a full spool of an operator who prefers availability: chats are served, their rows printed', async () => {
  const sent: Sent[] = [];
  const env = { GW_SPOOL_BYTES: String(spoolBytes), GW_SPOOL_FULL: 'drop' };
  const { running, user } = await cutOff(env, sent);
  await eventually(async () => {
    sent.push(await sendChat(world.url, user));
    return (await metric(running, 'gw_log_rows_dropped_total')) >= 10 || undefined;
  });
  expect(failures(sent)).toEqual([]);
  await postgres.start();
  await untilRowsStored(running);
  const stored = await sql<{ request_id: string }>(
    world.database.url,
    'SELECT request_id FROM request_logs WHERE user_id = $1',
    [user.id],
  );
  const printed = printedRows(running);
  expect(printed.length).toBeGreaterThanOrEqual(10);
  const everywhere = [...stored.map((row) => row.request_id), ...printed];
  expect(everywhere.toSorted()).toEqual(sent.map((one) => one.id).toSorted());
});

/** Request ids of the rows on stdout. */
function printedRows(running: GatewayUnderTest): string[] {
  return running
    .logs()
    .filter((line) => line['event'] === 'request_log_row')
    .map((line) => (line['row'] as { request_id: string }).request_id);
}

async function segments(): Promise<string[]> {
  const names = await readdir(world.spoolDir, { recursive: true });
  return names.filter((name) => /\d{10}\.ndjson$/.test(name)).map((name) => join(world.spoolDir, name));
}

test('a torn last line costs the one row it held, is kept aside, and the rest is replayed', async () => {
  const sent: Sent[] = [];
  const { running, user } = await cutOff({}, sent);
  for (let index = 0; index < 20; index += 1) sent.push(await sendChat(world.url, user));
  await endBy('SIGKILL', running);
  const [segment = ''] = (await segments()).slice(-1);
  await truncate(segment, (await stat(segment)).size - 40);
  await postgres.start();
  const again = await world.start();
  gateway = again;
  await untilReadyIs(again, 200);
  const torn = sent.pop();
  const [row] = await eventually(async () => {
    const rows = await sql<{ count: number }>(
      world.database.url,
      'SELECT count(*)::int AS count FROM request_logs WHERE user_id = $1',
      [user.id],
    );
    return rows[0]?.count === sent.length ? rows : undefined;
  });
  expect(row?.count).toBe(sent.length);
  const asides = (await readdir(world.spoolDir, { recursive: true })).filter((name) =>
    name.endsWith('bad.ndjson'),
  );
  const kept = await Promise.all(asides.map((name) => readFile(join(world.spoolDir, name), 'utf8')));
  expect(kept.join('\n')).toContain(torn?.id);
  await eventually(async () => (await segments()).length === 0 || undefined);
});

test('garbage in the spool costs no row', async () => {
  const sent: Sent[] = [];
  const { running, user } = await cutOff({}, sent);
  for (let index = 0; index < 5; index += 1) sent.push(await sendChat(world.url, user));
  await endBy('SIGKILL', running);
  const [segment = ''] = (await segments()).slice(-1);
  await appendFile(
    segment,
    Buffer.concat([Buffer.from('{"no":"checksum"}\n\0\xff\n'), Buffer.alloc(100_000, 'z')]),
  );
  await postgres.start();
  const again = await world.start();
  gateway = again;
  await untilReadyIs(again, 200);
  await expectNothingLost(again, sent, user);
});

test('a gateway that is stopped while Postgres is away prints its rows and leaves them to the next one', async () => {
  const sent: Sent[] = [];
  const { running, user } = await cutOff({}, sent);
  for (let index = 0; index < 10; index += 1) sent.push(await sendChat(world.url, user));
  expect(await endBy('SIGTERM', running)).toBe(0);
  const printed = printedRows(running);
  // A row that took its time before the outage may be among them.
  expect(printed).toEqual(expect.arrayContaining(sent.slice(-10).map((one) => one.id)));
  expect(new Set(printed).size).toBe(printed.length);
  await postgres.start();
  const again = await world.start();
  gateway = again;
  await untilReadyIs(again, 200);
  await expectNothingLost(again, sent, user);
});
