/** The tables change under load, well and badly: no request fails, none sees two versions, bad ones are not used. */
import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { tables } from '../harness/gateway/tables.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { expectLedgersAgree } from '../harness/ledgers/fault-ledgers.ts';
import type { Load, Sent } from '../harness/ledgers/fault-load.ts';
import { failures, sendChat, startLoad } from '../harness/ledgers/fault-load.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectWithin, timed } from '../harness/measure/fault-bounds.ts';
import { metric, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import { sql } from '../harness/servers/fault-postgres.ts';
import { useFolder } from '../harness/servers/use-started.ts';
import { streamEvents, streamOf } from '../harness/vendors/vendor-plans.ts';
import { gate } from '../harness/vendors/vendor-reply.ts';

/** The counts of an answer of the fake vendor. */
const inputTokens = 11;

const mount = useFolder();
let users: User[];
let load: Load | undefined;
let version = 0;
/** Hash of a version → its price, in micro-dollars per input token. */
const prices = new Map<string, number>();

interface Status {
  readonly generation: number;
  readonly hash: string;
  readonly last_reload_ok: boolean;
}

async function tablesStatus(): Promise<Status> {
  const response = await httpClient(gateway.adminUrl).get('/readyz');
  expect(response.status).toBe(200);
  return response.json<{ tables: Status }>().tables;
}

/** Replaces the mounted volume as a kubelet does: a new folder, then the swap of one symlink. */
async function swap(content: string | null): Promise<void> {
  version += 1;
  const folder = join(mount.path, `..version-${version}`);
  await mkdir(folder);
  if (content !== null) await writeFile(join(folder, 'tables.yaml'), content);
  await symlink(folder, join(mount.path, '..data_tmp'));
  await rename(join(mount.path, '..data_tmp'), join(mount.path, '..data'));
}

function priced(microUsd: number): string {
  const price = { provider: 'openai', model: 'gpt-test', input: `${microUsd}.00`, output: '0.00' } as const;
  return JSON.stringify(tables({ prices: [price] }));
}

/** Swaps in a new price and waits until it is in use. */
async function reprice(microUsd: number): Promise<void> {
  const { generation } = await tablesStatus();
  await swap(priced(microUsd));
  const { hash } = await eventually(async () => {
    const status = await tablesStatus();
    return status.generation > generation ? status : undefined;
  });
  prices.set(hash, microUsd);
}

const gateway = useGateway(async () => {
  const file = join(mount.path, 'tables.yaml');
  await swap(priced(1));
  await symlink(join('..data', 'tables.yaml'), file);
  return { env: { GW_TABLES_FILE: file } };
});

beforeAll(async () => {
  prices.set((await tablesStatus()).hash, 1);
});

beforeEach(async () => {
  users = await Promise.all([1, 2, 3].map(() => registerWithKeys(gateway.url, ['openai'])));
});

afterEach(async () => {
  await load?.stop();
});

/** Each row was priced by the version that it names. */
async function expectOneVersionEach(sent: readonly Sent[]): Promise<number> {
  expect(failures(sent)).toEqual([]);
  await untilRowsStored(gateway);
  await expectLedgersAgree({ databaseUrl: gateway.database.url, vendors: gateway.vendors, sent, users });
  const rows = await sql<{ tables_version: string; cost: number }>(
    gateway.database.url,
    'SELECT tables_version, cost_micro_usd::int AS cost FROM request_logs WHERE user_id = ANY($1::uuid[])',
    [users.map((user) => user.id)],
  );
  const wrong = rows.filter(
    (row) => row.cost !== inputTokens * (prices.get(row.tables_version) ?? Number.NaN),
  );
  expect(wrong).toEqual([]);
  return new Set(rows.map((row) => row.tables_version)).size;
}

test('twenty swaps of a mounted volume under load are each applied, and no request fails or mixes two', async () => {
  load = startLoad({ url: gateway.url, users });
  let slowestMs = 0;
  for (let round = 2; round <= 21; round += 1) {
    slowestMs = Math.max(slowestMs, await timed(() => reprice(round)));
    await load.more(5);
  }
  expectWithin('slowest reload', slowestMs, 5_000);
  expect(await expectOneVersionEach(await load.stop())).toBeGreaterThan(15);
}, 90_000);

describe('a document that cannot be used', () => {
  test.each<[string, string | null]>([
    ['no YAML', 'tiers: [unclosed'],
    ['empty', ''],
    ['deleted', null],
    ['of an unknown provider', priced(1).replaceAll('sarvam', 'nobody')],
    ['with a negative price', priced(1).replace('1.00', '-1.00')],
    ['with an empty tier', JSON.stringify({ ...tables(), tiers: { ...tables().tiers, balanced: [] } })],
  ])(
    '(%s) leaves the last good one in use, says so, and gives way to the next good one',
    async (_name, content) => {
      await reprice(50);
      const before = await tablesStatus();
      load = startLoad({ url: gateway.url, users });
      await load.more(5);
      const complaints = () => gateway.logs().filter((line) => line['level'] === 'error').length;
      const complained = complaints();
      await swap(content);
      await eventually(async () => (await tablesStatus()).last_reload_ok === false || undefined, 15_000);
      await load.more(10);
      expect(await tablesStatus()).toEqual({ ...before, last_reload_ok: false });
      expect(await metric(gateway, 'gw_config_last_reload_successful')).toBe(0);
      await eventually(() => Promise.resolve(complaints() > complained || undefined));
      expect(complaints(), 'it says so once').toBe(complained + 1);
      await reprice(51);
      expect(await tablesStatus()).toMatchObject({ last_reload_ok: true });
      expect(await metric(gateway, 'gw_config_last_reload_successful')).toBe(1);
      const after = await sendChat(gateway.url, users[0] as User);
      expect(await expectOneVersionEach([...(await load.stop()), after])).toBe(2);
    },
  );
});

test('a stream that is running keeps the tables it began with', async () => {
  await reprice(60);
  const { hash } = await tablesStatus();
  const opening = gate();
  gateway.vendors.openai.script((request) => {
    const [role = '', first = '', ...rest] = streamEvents(request);
    return streamOf([role, first, opening, ...rest])(request);
  });
  const stream = sendChat(gateway.url, users[0] as User, { stream: true });
  await eventually(async () => (await metric(gateway, 'gw_inflight_streams')) === 1 || undefined);
  await reprice(61);
  opening.open();
  const sent = await stream;
  expect(sent.text).toContain(`"cost_usd":"0.000${inputTokens * 60}"`);
  await expectOneVersionEach([sent]);
  const rows = await sql<{ tables_version: string }>(
    gateway.database.url,
    'SELECT tables_version FROM request_logs WHERE request_id = $1',
    [sent.id],
  );
  expect(rows).toEqual([{ tables_version: hash }]);
});
