import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseAllDocuments } from 'yaml';
import type { User } from '../gateway/register.ts';
import { registerWithKeys } from '../gateway/register.ts';
import type { GatewayUnderTest } from '../gateway/start-gateway.ts';
import { startGateway } from '../gateway/start-gateway.ts';
import { tables } from '../gateway/tables.ts';
import { eventually } from '../measure/eventually.ts';
import { measuredFile } from '../stage/measured.ts';
import { failure, hang, htmlOk, longStream, reset, tokensThen } from '../vendors/vendor-plans.ts';

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
  readonly users: readonly User[];
  memory(): Promise<Memory>;
}

const userCount = 10;
const idleSeconds = 2;
/** What of the chart's settings bears on memory. */
const taken = ['NODE_OPTIONS', 'GW_MAX_HEAP_BYTES', 'GW_MAX_EVENT_LOOP_DELAY_MS', 'GW_BODY_LIMIT_BYTES'];
/** About 1.6 MB: more than sockets hold, so that a slow reader is felt. */
const talk = longStream(400, 4096);
const probeLimitMs = 30_000;
const registrationLimitMs = 60_000;

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

/** The built gateway with the chart's limits, faulty vendors and users; needs TEST_DATABASE_URL. */
export async function startSoakWorld(folder: string): Promise<SoakWorld> {
  const probeFile = join(folder, 'memory.jsonl');
  const chart = chartSettings();
  const probe = pathToFileURL(measuredFile('soak', 'probe')).href;
  const gateway = await startGateway({
    env: {
      ...chart,
      NODE_OPTIONS: `${chart['NODE_OPTIONS']} --import=${probe}`,
      GW_SOAK_PROBE_FILE: probeFile,
    },
    tables: tables({ timeouts: { stream_idle_seconds: idleSeconds } }),
  });
  const { openai } = gateway.vendors;
  openai.when('vendor-500', failure(500));
  openai.when('vendor-429', failure(429, { 'retry-after': '1' }));
  openai.when('vendor-resets', reset);
  openai.when('vendor-cuts', tokensThen(3, 'clean-end'));
  openai.when('vendor-html', htmlOk);
  openai.when('vendor-hangs', hang);
  openai.when('vendor-waits', hang);
  openai.when('vendor-stalls', tokensThen(3, 'hang'));
  openai.when('vendor-talks', talk);
  const users: User[] = [];
  // A process that has just started on a busy machine may shed load: then once more.
  const register = () => registerWithKeys(gateway.url, ['openai', 'together']).catch(() => undefined);
  while (users.length < userCount) users.push(await eventually(register, registrationLimitMs));
  let lines = 0;
  const memory = async (): Promise<Memory> => {
    process.kill(gateway.pid, 'SIGUSR2');
    const line = await eventually(async () => {
      const found = existsSync(probeFile) ? readFileSync(probeFile, 'utf8').split('\n').slice(0, -1) : [];
      return found.length > lines ? found.at(-1) : undefined;
    }, probeLimitMs);
    lines += 1;
    return { ...(JSON.parse(line) as Omit<Memory, 'anonymous'>), anonymous: anonymousBytes(gateway.pid) };
  };
  return { gateway, users, memory };
}

/** The ledgers of vendors are not looked at here, and would fill the memory of this process. */
export function forgetLedgers(gateway: GatewayUnderTest): void {
  for (const name of ['openai', 'together'] as const) gateway.vendors[name].ledger.length = 0;
}
