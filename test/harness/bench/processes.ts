import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../../src/dev/free-port.ts';
import { childrenOf } from '../servers/signals.ts';
import { measuredFile } from '../stage/measured.ts';
import { inProject, root, StageError } from '../stage/project.ts';
import type { Said } from './worker.ts';

const GATEWAY_START_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 10_000;
const CALL_LIMIT_MS = 10_000;
const POLL_MS = 20;

export interface Running {
  readonly pid: number;
  readonly url: string;
  stop(): Promise<void>;
}

/** A process that does as it is told; `url` is empty if it serves nothing. */
export interface Worker<Order> extends Running {
  /** Resolves with its answer; throws StageError when it fails or ends. */
  ask(order: Order): Promise<unknown>;
}

type Environment = Readonly<Record<string, string>>;

/** How a gateway differs from the one with defaults. */
export interface GatewayOptions {
  readonly env?: Environment;
  /** Names of files of this folder that are loaded before it. */
  readonly preload?: readonly string[];
}

/** A bare forwarder to that vendor. */
export function startFloor(
  kind: 'http' | 'fastify',
  vendorUrl: string,
  env: Environment = {},
): Promise<Running> {
  return startChild(measuredFile('bench', 'floor'), [kind, vendorUrl], env);
}

/** A process of this folder that is not measured. */
export function startWorker<Order>(
  name: 'vendor' | 'load' | 'collector',
  args: readonly string[] = [],
): Promise<Worker<Order>> {
  return startChild(join(import.meta.dirname, `${name}.ts`), args);
}

async function startChild<Order>(
  file: string,
  args: readonly string[],
  env: Environment = {},
): Promise<Worker<Order>> {
  const child = fork(file, args, { cwd: root, env: { ...process.env, ...env } });
  const url = (await reply(child, file)) as string;
  const ask = (order: Order) => {
    const answer = reply(child, file);
    child.send(order as object);
    return answer;
  };
  return { pid: child.pid ?? 0, url, ask, stop: () => stop(child) };
}

function reply(child: ChildProcess, name: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const forget = () => {
      child.off('message', onMessage);
      child.off('exit', onExit);
    };
    const onExit = () => {
      forget();
      reject(new StageError(`${name} ended.`));
    };
    const onMessage = (said: Said) => {
      forget();
      if ('problem' in said) reject(new StageError(`${name}: ${said.problem}`));
      else resolve(said.result);
    };
    child.on('message', onMessage);
    child.on('exit', onExit);
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const killer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  await exited;
  clearTimeout(killer);
}

/** What all gateways of one run share: database, sealing key, vendor. */
export function gatewayEnvironment(databaseUrl: string, vendorUrl: string): NodeJS.ProcessEnv {
  const ours = /^(GW_|OTEL_|DATABASE_|REDIS_|PORT$)/;
  const others = Object.entries(process.env).filter(([name]) => !ours.test(name));
  return {
    ...Object.fromEntries(others),
    NODE_ENV: 'production',
    DATABASE_URL: databaseUrl,
    GW_SEALING_KEYS: `bench:${randomBytes(32).toString('base64')}`,
    GW_OPENAI_BASE_URL: vendorUrl,
    GW_ANTHROPIC_BASE_URL: vendorUrl,
    GW_HOST: '127.0.0.1',
    GW_ADMIN_HOST: '127.0.0.1',
    GW_DRAIN_SECONDS: '1',
  };
}

/** `dist/main.js` as an operator runs it, its log in a file of the folder. Throws StageError. */
export async function startGateway(
  folder: string,
  shared: NodeJS.ProcessEnv,
  { env = {}, preload = [] }: GatewayOptions = {},
): Promise<Running> {
  const name = `gateway-${randomBytes(4).toString('hex')}`;
  const log = join(folder, `${name}.log`);
  const output = openSync(log, 'w');
  const [port, adminPort] = [await freePort(), await freePort()];
  const child = fork(inProject('dist', 'main.js'), [], {
    cwd: root,
    env: {
      ...shared,
      ...env,
      PORT: String(port),
      GW_ADMIN_PORT: String(adminPort),
      GW_DATA_DIR: join(folder, name),
    },
    execArgv: ['end-with-parent', ...preload].flatMap((file) => ['--import', measuredFile('bench', file)]),
    stdio: ['ignore', output, output, 'ipc'],
  });
  const limit = Date.now() + GATEWAY_START_LIMIT_MS;
  for (;;) {
    if (await isReady(adminPort)) {
      return { pid: child.pid ?? 0, url: `http://127.0.0.1:${port}`, stop: () => stop(child) };
    }
    if (child.exitCode !== null || Date.now() > limit) {
      await stop(child);
      throw new StageError(`The gateway did not start:\n${readFileSync(log, 'utf8').slice(-2_000)}`);
    }
    await delay(POLL_MS);
  }
}

async function isReady(adminPort: number): Promise<boolean> {
  const signal = AbortSignal.timeout(CALL_LIMIT_MS);
  const answer = await fetch(`http://127.0.0.1:${adminPort}/readyz`, { signal }).catch(() => null);
  await answer?.arrayBuffer();
  return answer?.ok === true;
}

/** A user with a key of one provider: the headers of their requests. */
export async function registerUser(url: string, provider: string): Promise<Record<string, string>> {
  const user = await post(`${url}/v1/users`, {}, { email: `${provider}@example.com` });
  const headers = { authorization: `Bearer ${user['api_key']}` };
  await post(`${url}/v1/keys`, headers, { provider, api_key: 'sk-bench' });
  return headers;
}

async function post(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: object,
): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(CALL_LIMIT_MS),
  });
  const text = await response.text();
  if (!response.ok) throw new StageError(`${url} answered ${response.status}: ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

/**
 * CPU time of a process so far in microseconds, user and system, of all threads that are alive. It is what the scheduler
 * counts, in nanoseconds; /proc/<pid>/stat would only tell hundredths of a second.
 */
export function cpuMicroseconds(pid: number): number {
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ', 1)[0]);
  }
  return nanoseconds / 1_000;
}

/** The same of a server's sessions, which are its children. Postgres ends one of its workers now and then: it counts 0. */
export function childrenMicroseconds(pid: number): number {
  return childrenOf(pid).reduce((sum, child) => sum + microsecondsIfAlive(child), 0);
}

function microsecondsIfAlive(pid: number): number {
  try {
    return cpuMicroseconds(pid);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return 0;
    throw error;
  }
}

/** Memory of a process that is in RAM, in MiB. */
export function residentMib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}
