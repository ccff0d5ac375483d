import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseAllDocuments } from 'yaml';
import type { User } from '../gateway/register.ts';
import { registerWithKeys } from '../gateway/register.ts';
import type { GatewayUnderTest } from '../gateway/start-gateway.ts';
import { startGateway } from '../gateway/start-gateway.ts';
import type { TablesInput } from '../gateway/tables.ts';
import { tables, testPrices } from '../gateway/tables.ts';
import { eventually } from '../measure/eventually.ts';
import { measuredFile } from '../stage/measured.ts';
import { failure, hang, htmlOk, longStream, reset, tokensThen } from '../vendors/vendor-plans.ts';
import type { SoakStores } from './stores.ts';
import { startSoakStores } from './stores.ts';

/** What the gateway says about its memory, bytes, after garbage was collected. */
export interface Memory {
  readonly rss: number;
  /** The part of `rss` that is no mapped file: pages of the program itself come and go as the kernel likes. */
  readonly anonymous: number;
  readonly heapUsed: number;
  /** What the heap has reserved. */
  readonly heapTotal: number;
  readonly external: number;
  /** Sockets, timers and the like. */
  readonly handles: number;
}

export interface SoakWorld {
  readonly gateway: GatewayUnderTest;
  readonly stores: SoakStores;
  /** Of the load: their keys stay, so that they are known when Postgres is away. */
  readonly users: readonly User[];
  /** How often vendors were called by request id, as of the last `collectCalls`. */
  readonly calls: ReadonlyMap<string, number>;
  memory(): Promise<Memory>;
  /** Counts the vendors' ledgers and empties them: they would fill the memory of this process. */
  collectCalls(): void;
  close(): Promise<void>;
}

const userCount = 10;
/** A vendor that stalls is given up after this; shorter ones would be those of a machine that others use. */
const idleSeconds = 5;
/**
 * What of the chart's settings bears on memory. Not the limit of the event loop's delay: this machine stands still for as
 * long when another server starts on it, and what is shed then tells nothing.
 */
const taken = ['NODE_OPTIONS', 'GW_MAX_HEAP_BYTES', 'GW_BODY_LIMIT_BYTES'];
/** About 1.6 MB: more than sockets hold, so that a slow reader is felt. */
const talk = longStream(400, 4096);
const probeLimitMs = 30_000;
const registrationLimitMs = 60_000;
const requestIdInPrompt = /request ([0-9a-f-]{36})/;

/** The gateway's environment as the chart renders it by default. */
function chartSettings(): Record<string, string> {
  const file = join(import.meta.dirname, '../../chart/rendered/defaults.yaml');
  const documents = parseAllDocuments(readFileSync(file, 'utf8')).map(
    (document) => document.toJS() as { kind?: string; spec?: unknown },
  );
  const deployment = documents.find(({ kind }) => kind === 'Deployment') as {
    spec: { template: { spec: { containers: { env: { name: string; value?: string }[] }[] } } };
  };
  const [container] = deployment.spec.template.spec.containers;
  const env = (container?.env ?? []).filter(({ name, value }) => taken.includes(name) && value !== undefined);
  return Object.fromEntries(env.map(({ name, value }) => [name, value ?? '']));
}

/** From /proc, which only Linux has. */
function anonymousBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) * 1024;
}

/** The tables of the run with these prices of the first candidate. */
export function soakTables(price: { readonly input: string; readonly output: string }): TablesInput {
  const prices = testPrices.map((row) => (row.model === 'gpt-test-small' ? { ...row, ...price } : row));
  return tables({ timeouts: { stream_idle_seconds: idleSeconds }, prices });
}

function playVendors({ vendors: { openai } }: GatewayUnderTest): void {
  openai.when('vendor-500', failure(500));
  openai.when('vendor-429', failure(429, { 'retry-after': '1' }));
  openai.when('vendor-resets', reset);
  openai.when('vendor-cuts', tokensThen(3, 'clean-end'));
  openai.when('vendor-html', htmlOk);
  openai.when('vendor-hangs', hang);
  openai.when('vendor-waits', hang);
  openai.when('vendor-stalls', tokensThen(3, 'hang'));
  openai.when('vendor-talks', talk);
}

async function registerUsers(gateway: GatewayUnderTest): Promise<User[]> {
  const users: User[] = [];
  // A process that has just started on a busy machine may shed load: then once more.
  const register = () => registerWithKeys(gateway.url, ['openai', 'together']).catch(() => undefined);
  while (users.length < userCount) users.push(await eventually(register, registrationLimitMs));
  return users;
}

/** The built gateway with the chart's limits on stores that fail over, faulty vendors and users. */
export async function startSoakWorld(folder: string): Promise<SoakWorld> {
  const probeFile = join(folder, 'memory.jsonl');
  const chart = chartSettings();
  const probe = pathToFileURL(measuredFile('soak', 'probe')).href;
  const stores = await startSoakStores();
  try {
    const gateway = await startGateway({
      database: { url: stores.postgres.url, drop: () => Promise.resolve() },
      redisUrl: stores.redis.url,
      env: {
        ...chart,
        NODE_OPTIONS: `${chart['NODE_OPTIONS']} --import=${probe}`,
        GW_SOAK_PROBE_FILE: probeFile,
      },
      tables: soakTables({ input: '0.10', output: '0.50' }),
    });
    playVendors(gateway);
    const calls = new Map<string, number>();
    return {
      gateway,
      stores,
      users: await registerUsers(gateway),
      calls,
      memory: memoryProbe(gateway, probeFile),
      collectCalls: () => countCalls(gateway, calls),
      close: async () => {
        await gateway.stop();
        await stores.close();
      },
    };
  } catch (error) {
    await stores.close();
    throw error;
  }
}

function memoryProbe(gateway: GatewayUnderTest, probeFile: string): () => Promise<Memory> {
  let lines = 0;
  return async () => {
    process.kill(gateway.pid, 'SIGUSR2');
    const line = await eventually(async () => {
      const found = existsSync(probeFile) ? readFileSync(probeFile, 'utf8').split('\n').slice(0, -1) : [];
      return found.length > lines ? found.at(-1) : undefined;
    }, probeLimitMs);
    lines += 1;
    return { ...(JSON.parse(line) as Omit<Memory, 'anonymous'>), anonymous: anonymousBytes(gateway.pid) };
  };
}

function countCalls({ vendors }: GatewayUnderTest, calls: Map<string, number>): void {
  for (const name of ['openai', 'together'] as const) {
    for (const { bodyText } of vendors[name].ledger.splice(0)) {
      const id = requestIdInPrompt.exec(bodyText)?.[1];
      if (id !== undefined) calls.set(id, (calls.get(id) ?? 0) + 1);
    }
  }
}
