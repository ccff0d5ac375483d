/** Ten thousand reloads under load, from a mounted directory and through the Kubernetes API. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ReadTables } from '../../src/adapters/tables/last-good-tables.ts';
import { LastGoodTables, readTables } from '../../src/adapters/tables/last-good-tables.ts';
import type { RoutingTables } from '../../src/core/tables/tables.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { tables } from '../harness/gateway/tables.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { expectLedgersAgree } from '../harness/ledgers/fault-ledgers.ts';
import type { Sent } from '../harness/ledgers/fault-load.ts';
import { failures, startLoad } from '../harness/ledgers/fault-load.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { measured } from '../harness/measure/fault-bounds.ts';
import { metric, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import { sql } from '../harness/servers/fault-postgres.ts';
import { useFolder } from '../harness/servers/use-started.ts';
import { configMap, FakeTablesApi } from './tables-api.ts';

const reloads = 10_000;
/** Documents that take turns, so that each differs from the one before; no multiple of what goes between two requests. */
const variants = 49;
/** Per finished request, so that requests and reloads are interleaved throughout. */
const reloadsPerRequest = 20;
/** Parts of a document that nobody asks for: a table that is kept by mistake is heavy. */
const otherPrices = 100;
/** Of the fake vendor's answers. */
const inputTokens = 11;
/** A table that is kept by mistake weighs about 100 KiB. */
const allowedGrowthBytes = 4 * 1024 * 1024;

/** A reload follows an event after 50 ms. */
const mostReloadsPerSecond = 21;

interface Variant {
  readonly text: string;
  readonly hash: string;
  readonly model: string;
  readonly costMicroUsd: number;
  readonly costUsd: string;
}

/** Each version has a model of its own, whose price no other version knows. */
function variant(index: number): Variant {
  const model = `model-${index}`;
  const microUsd = index + 1;
  const others = Array.from({ length: otherPrices }, (_, other) => ({
    provider: 'together' as const,
    model: `other-${other}`,
    input: `${microUsd}.00`,
    output: '1.00',
  }));
  const document = tables({
    tiers: {
      ...tables().tiers,
      balanced: [
        { provider: 'openai', model },
        { provider: 'sarvam', model },
      ],
    },
    prices: [{ provider: 'openai', model, input: `${microUsd}.00`, output: '0.00' }, ...others],
  });
  const text = JSON.stringify(document);
  const read = readTables(text);
  if (!read.ok) throw new Error(read.fault.message);
  const costMicroUsd = inputTokens * microUsd;
  return { text, hash: read.hash, model, costMicroUsd, costUsd: (costMicroUsd / 1e6).toFixed(6) };
}

const documents = Array.from({ length: variants }, (_, index) => variant(index));
const byHash = new Map(documents.map((one) => [one.hash, one]));
const documentOf = (round: number): string => documents[round % variants]?.text ?? '';

let gateway: GatewayUnderTest;

interface Answer {
  readonly model: string;
  readonly gateway: { readonly model: string; readonly cost_usd: string };
}

/** The `gateway` block of an answer, JSON or stream. */
function blockOf({ stream, text }: Sent): Answer['gateway'] | undefined {
  if (!stream) return (JSON.parse(text) as Answer).gateway;
  const block = /"gateway":(\{[^}]*\})/.exec(text)?.[1];
  return block === undefined ? undefined : (JSON.parse(block) as Answer['gateway']);
}

/** Every answer was whole, and answer, price and row come from one and the same version. Returns how many were seen. */
async function expectOneVersionEach(sent: readonly Sent[], users: readonly User[]): Promise<number> {
  expect(failures(sent)).toEqual([]);
  await untilRowsStored(gateway);
  const { database, vendors } = gateway;
  await expectLedgersAgree({ databaseUrl: database.url, vendors, sent, users });
  const rows = await sql<{ id: string; version: string; model: string; cost: number }>(
    database.url,
    'SELECT request_id AS id, tables_version AS version, model, cost_micro_usd::int AS cost FROM request_logs',
    [],
  );
  const rowOf = new Map(rows.map((row) => [row.id, row]));
  const torn = sent.filter((one) => {
    const row = rowOf.get(one.id);
    const used = byHash.get(row?.version ?? '');
    const block = blockOf(one);
    const isWhole = row?.model === used?.model && row?.cost === used?.costMicroUsd;
    return !isWhole || block?.model !== used?.model || block?.cost_usd !== used?.costUsd;
  });
  expect(torn.slice(0, 3)).toEqual([]);
  return new Set(rows.map((row) => row.version)).size;
}

/** Calls `reload(round)` ten thousand times while requests run, and judges them all. */
async function reloadUnderLoad(reload: (round: number) => void): Promise<void> {
  const users = await Promise.all([1, 2, 3].map(() => registerWithKeys(gateway.url, ['openai'])));
  const load = startLoad({ url: gateway.url, users, workers: 8, restMs: 5 });
  try {
    for (let round = 1; round <= reloads; round += 1) {
      reload(round);
      if (round % reloadsPerRequest === 0) await load.more(1);
    }
  } finally {
    await load.stop();
  }
  expect(await expectOneVersionEach(load.sent, users)).toBeGreaterThan(variants / 2);
}

/** The last document is in use, and the others cost no more than a reload every 50 ms. */
async function expectSettled(sinceMs: number): Promise<void> {
  const last = documents[reloads % variants]?.hash;
  await eventually(async () => {
    const response = await httpClient(gateway.adminUrl).get('/readyz');
    return response.json<{ tables: { hash: string } }>().tables.hash === last || undefined;
  });
  const seconds = (performance.now() - sinceMs) / 1000;
  const taken = await metric(gateway, 'gw_config_reloads_total');
  measured(`${taken} reloads in ${seconds.toFixed(1)} s`);
  expect(taken).toBeLessThan(seconds * mostReloadsPerSecond);
}

describe('ten thousand changes under load: no request fails, none sees two versions', () => {
  const folder = useFolder();

  test('of a mounted directory', async () => {
    const mount = await mkdtemp(join(folder.path, 'mount-'));
    swapVolume(mount, 0);
    symlinkSync(join('..data', 'tables.yaml'), join(mount, 'tables.yaml'));
    gateway = await startForTest({ env: { GW_TABLES_FILE: join(mount, 'tables.yaml') } });
    const startedAtMs = performance.now();
    await reloadUnderLoad((round) => swapVolume(mount, round));
    await expectSettled(startedAtMs);
  }, 180_000);

  test('of a ConfigMap that is watched through the API', async () => {
    const fake = new FakeTablesApi(documentOf(0));
    await fake.start();
    onTestFinished(() => fake.stop());
    const kubeconfig = join(folder.path, 'kubeconfig');
    await writeFile(kubeconfig, fake.kubeconfig());
    const tablesConfigMap = `${configMap.namespace}/${configMap.name}`;
    gateway = await startForTest({ env: { GW_TABLES_CONFIGMAP: tablesConfigMap, KUBECONFIG: kubeconfig } });
    const startedAtMs = performance.now();
    await reloadUnderLoad((round) => fake.edit(documentOf(round)));
    await expectSettled(startedAtMs);
    // A busy process may lose its watch, but it asks for no more than a few.
    expect(fake.requests.length).toBeLessThan(20);
  }, 180_000);
});

test('ten thousand reloads leave nothing behind', () => {
  const read = documents.map(({ text }) => readTables(text));
  const metrics = new Metrics();
  const listeners = { onReload: (loaded: RoutingTables) => metrics.useTables(loaded) };
  const tables = new LastGoodTables(read[0] as ReadTables, listeners, Date.now);
  let early = 0;
  for (let round = 1; round <= reloads; round += 1) {
    tables.offer(read[round % variants] as ReadTables);
    if (round === 1_000) early = heapInUse();
  }
  expect(tables.status().generation).toBe(1 + reloads);
  expect(heapInUse() - early).toBeLessThan(allowedGrowthBytes);
});

/** Bytes that are still reachable. */
function heapInUse(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

/**
 * Replaces the mounted volume as a kubelet does: a new folder, the swap of one symlink, the old folder removed. In one
 * step, since ten thousand waits for a busy event loop would be most of the test's time.
 */
function swapVolume(mount: string, round: number): void {
  const version = join(mount, `..version-${round}`);
  mkdirSync(version);
  writeFileSync(join(version, 'tables.yaml'), documentOf(round));
  symlinkSync(version, join(mount, '..data_tmp'));
  renameSync(join(mount, '..data_tmp'), join(mount, '..data'));
  rmSync(join(mount, `..version-${round - 1}`), { recursive: true, force: true });
}
