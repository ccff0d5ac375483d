import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { patient } from '../measure/crowding.ts';
import type { TestDatabase } from '../servers/postgres.ts';
import { createDatabase } from '../servers/postgres.ts';
import type { VendorPack } from '../vendors/vendor-pack.ts';
import { startVendorPack } from '../vendors/vendor-pack.ts';
import type { TablesInput } from './tables.ts';
import { tables } from './tables.ts';

const entry = join(import.meta.dirname, '../../../dist/main.js');

/** A start that takes longer than this has failed; migrations of an empty database included. */
const startLimitMs = 60_000;
const stopLimitMs = 45_000;

export interface GatewayOptions {
  /** Settings beyond the defaults; `undefined` removes one. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly tables?: TablesInput;
  /** Shared vendors; a pack of its own otherwise, which `stop` closes. */
  readonly vendors?: VendorPack;
  /** A shared database; a fresh one otherwise, which `stop` drops. */
  readonly database?: TestDatabase;
  readonly redisUrl?: string;
  /** A module loaded before the gateway's own code, which may speak over IPC. */
  readonly preload?: string;
  /** The program of another release; `dist/main.js` unless given. */
  readonly main?: string;
}

export interface GatewayUnderTest {
  readonly url: string;
  readonly adminUrl: string;
  readonly pid: number;
  readonly process: ChildProcess;
  readonly vendors: VendorPack;
  readonly database: TestDatabase;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly tablesFile: string;
  /** Replaces the tables file; the gateway picks the change up by itself. */
  writeTables(document: TablesInput | string): Promise<void>;
  /** Log lines of stdout so far: parsed, or `{ raw }` for lines that are not JSON. */
  logs(): Record<string, unknown>[];
  /** Everything written to stdout and stderr so far. */
  output(): string;
  /** Ends the process and resolves with its exit code; then frees what was made for it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  readonly exited: Promise<number | null>;
}

/** A sealing key setting with one fresh key. */
export function sealingKeys(id = 'k1'): string {
  return `${id}:${randomBytes(32).toString('base64')}`;
}

/** The environment without anything that would configure a gateway by accident: a run may choose its client. */
function cleanEnvironment(): Record<string, string | undefined> {
  const ours = /^(GW_(?!UPSTREAM_CLIENT$)|OTEL_|DATABASE_|REDIS_|PORT$)|^(https?|no)_proxy$/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
}

interface Running {
  readonly child: ChildProcess;
  readonly lines: string[];
  readonly exited: Promise<number | null>;
  readonly listening: Promise<{ url: string; adminUrl: string }>;
}

function launch(env: Record<string, string | undefined>, preload: string | undefined, main: string): Running {
  const args = preload === undefined ? [main] : ['--import', preload, main];
  const channel = preload === undefined ? [] : ['ipc' as const];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe', ...channel] });
  const lines: string[] = [];
  const exited = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const listening = new Promise<{ url: string; adminUrl: string }>((resolve, reject) => {
    const tail = () => lines.slice(-20).join('\n');
    const timer = setTimeout(
      () => reject(new Error(`gateway did not start:\n${tail()}`)),
      patient(startLimitMs),
    );
    void exited.then((code) => {
      clearTimeout(timer);
      reject(new Error(`gateway exited with ${code}:\n${tail()}`));
    });
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line);
        if (!line.includes('"listening"')) return;
        const { msg, url, admin_url: adminUrl } = JSON.parse(line) as Record<string, string>;
        if (msg !== 'listening' || url === undefined || adminUrl === undefined) return;
        clearTimeout(timer);
        resolve({ url, adminUrl });
      });
    }
  });
  return { child, lines, exited, listening };
}

function parseLine(line: string): Record<string, unknown> {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return { raw: line };
  }
}

interface Surroundings {
  readonly folder: string;
  readonly vendors: VendorPack;
  readonly database: TestDatabase;
  /** Undoes what was made for this gateway alone. */
  free(): Promise<void>;
}

/** What a gateway stands on, as given or made for it; nothing is left of it where a part of it cannot be made. */
async function makeSurroundings(given: GatewayOptions): Promise<Surroundings> {
  const folder = await mkdtemp(join(tmpdir(), 'model-gateway-test-'));
  const undo: (() => Promise<void>)[] = [() => rm(folder, { recursive: true, force: true })];
  const free = async () => {
    for (const one of undo.splice(0).reverse()) await one();
  };
  try {
    const vendors = given.vendors ?? (await startVendorPack());
    if (given.vendors === undefined) undo.push(() => vendors.close());
    const database = given.database ?? (await createDatabase());
    if (given.database === undefined) undo.push(() => database.drop());
    return { folder, vendors, database, free };
  } catch (error) {
    await free();
    throw error;
  }
}

/** Starts `dist/main.js` as an operator would, with fake vendors and a database of its own. */
export async function startGateway(options: GatewayOptions = {}): Promise<GatewayUnderTest> {
  if (!existsSync(entry)) throw new Error('dist/main.js is missing: run "npm run build" first');
  const { folder, vendors, database, free } = await makeSurroundings(options);
  const tablesFile = join(folder, 'tables.yaml');
  const writeTables = (document: TablesInput | string) =>
    writeFile(tablesFile, typeof document === 'string' ? document : JSON.stringify(document, null, 2));
  await writeTables(options.tables ?? tables());
  const env = {
    ...cleanEnvironment(),
    PORT: '0',
    GW_HOST: '127.0.0.1',
    GW_ADMIN_PORT: '0',
    GW_ADMIN_HOST: '127.0.0.1',
    DATABASE_URL: database.url,
    REDIS_URL: options.redisUrl,
    GW_SEALING_KEYS: sealingKeys(),
    GW_TABLES_FILE: tablesFile,
    GW_SPOOL_DIR: join(folder, 'spool'),
    GW_DATA_DIR: join(folder, 'data'),
    GW_DRAIN_SECONDS: '5',
    // A machine that stands still for a second is not an overload to shed: the tests of shedding set their own limit.
    GW_MAX_EVENT_LOOP_DELAY_MS: '0',
    ...vendors.env,
    ...options.env,
  };
  const { child, lines, exited, listening } = launch(env, options.preload, options.main ?? entry);
  // Whoever cleans up after a killed test worker ends what stands here.
  await writeFile(join(folder, 'gateway.pid'), String(child.pid));

  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal);
    const killer = setTimeout(() => child.kill('SIGKILL'), patient(stopLimitMs));
    const code = await exited;
    clearTimeout(killer);
    await free();
    return code;
  };

  const addresses = await listening.catch(async (error: unknown) => {
    await stop('SIGKILL');
    throw error;
  });
  return {
    ...addresses,
    pid: child.pid ?? 0,
    process: child,
    vendors,
    database,
    env,
    tablesFile,
    writeTables,
    logs: () => lines.map(parseLine),
    output: () => lines.join('\n'),
    stop,
    exited,
  };
}
