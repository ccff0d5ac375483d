import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chownSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { makeOnce } from './one-at-a-time.ts';
import type { PostgresPlace } from './postgres-binaries.ts';
import { choosePlace } from './postgres-binaries.ts';
import {
  isAnyPostgres,
  isPostmaster,
  lastServerError,
  postmasterPath,
  readPostmasterFile,
} from './postmaster.ts';
import { StartError } from './start-error.ts';

/** Crash recovery of a large cluster is slow; a healthy start takes 0.1 s. */
const startTimeoutMs = 60_000;
/** A fast shutdown writes one checkpoint; then ever ruder signals. */
const stopTimeoutMs = 10_000;
const pollMs = 10;
/** The free port may be taken meanwhile, or the workers of a killed server may still be leaving. */
const startTries = 5;
const retryMs = 200;
const superuser = 'postgres';

export interface EmbeddedPostgresOptions {
  /** Holds the cluster, its password and its log; made when missing. As root it may move: see `home`. */
  readonly directory: string;
  /** False: no fsync, for clusters that are thrown away. */
  readonly durable: boolean;
  /** A free one when absent. Ignored when a running server is adopted. */
  readonly port?: number;
}

export interface EmbeddedPostgres {
  /** Superuser, database `postgres`. */
  readonly url: string;
  readonly pid: number;
  readonly port: number;
  /** Where the cluster really lives. */
  readonly home: string;
  /** True when the server had been left running by a killed process. */
  readonly adopted: boolean;
  /** Resolves once the server is gone; may be called twice. */
  stop(): Promise<void>;
  /** Lets it run on when this process ends, since somebody else uses it. */
  leave(): void;
}

/**
 * Runs a real Postgres on 127.0.0.1 from the installed package: makes the cluster at the first start, adopts a
 * server that a killed process left behind, repairs a stale `postmaster.pid`. Throws StartError, nothing left running.
 */
export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
  signal?: AbortSignal,
): Promise<EmbeddedPostgres> {
  const place = choosePlace(options.directory);
  const data = join(place.home, 'data');
  const isMade = (): boolean => existsSync(data);
  // Two first starts in one checkout meet here.
  await makeOnce(`${data}.lock`, isMade, () => makeCluster(place, data, signal), signal);
  const password = readFileSync(join(place.home, 'password'), 'utf8');

  const adopted = await findRunning(data, signal);
  const { pid, port } = adopted ?? (await startServer(place, data, options, signal));
  const stopAtExit = () => sendSignal(pid, 'SIGINT');
  process.once('exit', stopAtExit);
  return {
    url: `postgres://${superuser}:${password}@127.0.0.1:${port}/postgres`,
    pid,
    port,
    home: place.home,
    adopted: adopted !== null,
    async stop() {
      await stopServer(pid, () => isPostmaster(pid, data));
      process.off('exit', stopAtExit);
    },
    leave: () => process.off('exit', stopAtExit),
  };
}

async function makeCluster(place: PostgresPlace, data: string, signal?: AbortSignal): Promise<void> {
  const passwordPath = join(place.home, 'password');
  writeFileSync(passwordPath, randomBytes(24).toString('base64url'), { mode: 0o600 });
  if (place.runAs !== null) chownSync(passwordPath, place.runAs.uid, place.runAs.gid);
  // An interrupted initdb must not look like a cluster, so it works beside and is renamed.
  const partial = `${data}.partial`;
  rmSync(partial, { recursive: true, force: true });
  const args = [
    ...['-D', partial, '-U', superuser, `--pwfile=${passwordPath}`, '--auth=scram-sha-256', '--no-sync'],
    ...['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
  ];
  const log = openSync(join(place.home, 'initdb.log'), 'w');
  const child = spawn(join(place.native, 'bin', 'initdb'), args, spawnOptions(place, log));
  closeSync(log);
  const code = await exitCode(child, signal);
  if (code !== 0) {
    rmSync(partial, { recursive: true, force: true, maxRetries: 5 });
    signal?.throwIfAborted();
    const reason = lastServerError(join(place.home, 'initdb.log'));
    throw new StartError(
      `Postgres could not make its cluster in ${place.home}: ${reason ?? `exit ${code}`}.`,
    );
  }
  renameSync(partial, data);
}

function spawnOptions(place: PostgresPlace, log: number) {
  return {
    ...place.runAs,
    cwd: '/',
    // A session of its own: Ctrl-C in the terminal must reach the gateway first, the database last.
    detached: true,
    stdio: ['ignore', log, log] as ['ignore', number, number],
    windowsHide: true,
    env: { ...systemEnv(), TZ: 'UTC', LC_ALL: 'C' },
  };
}

/** On Windows sockets do not open without the variables of the system. */
function systemEnv(): NodeJS.ProcessEnv {
  if (process.platform !== 'win32') return { PATH: '/usr/bin:/bin' };
  // biome-ignore lint/style/noProcessEnv: no setting of ours, and of Postgres neither
  const { SystemRoot, PATH } = process.env;
  return { SystemRoot, PATH };
}

/** The exit code, or null when it could not be run or died by a signal. An abort kills it and its children. */
async function exitCode(child: ChildProcess, signal?: AbortSignal): Promise<number | null> {
  const kill = () => sendSignal(-(child.pid ?? 0), 'SIGKILL');
  signal?.addEventListener('abort', kill, { once: true });
  try {
    return await new Promise<number | null>((done) => {
      child.once('exit', done);
      child.once('error', () => done(null));
    });
  } finally {
    signal?.removeEventListener('abort', kill);
  }
}

/** The server that already runs on this cluster, once it is ready; removes a `postmaster.pid` that nobody keeps. */
async function findRunning(
  data: string,
  signal?: AbortSignal,
): Promise<{ pid: number; port: number } | null> {
  const deadline = Date.now() + startTimeoutMs;
  for (;;) {
    const running = readPostmasterFile(data);
    if (running === null) return null;
    if (!isPostmaster(running.pid, data)) {
      // Postgres itself refuses a file whose pid now belongs to any process of the same user.
      if (!isAnyPostgres(running.pid)) rmSync(postmasterPath(data), { force: true });
      return null;
    }
    if (running.status === 'ready') return running;
    if (Date.now() > deadline)
      throw new StartError(`Postgres (pid ${running.pid}) is stuck; stop it and try again.`);
    await delay(pollMs, undefined, signal === undefined ? {} : { signal });
  }
}

async function startServer(
  place: PostgresPlace,
  data: string,
  options: EmbeddedPostgresOptions,
  signal?: AbortSignal,
): Promise<{ pid: number; port: number }> {
  const logPath = join(place.home, 'server.log');
  let reason: string | null = null;
  for (let tries = 0; tries < startTries; tries += 1) {
    const port = options.port ?? (await freePort());
    const log = openSync(logPath, 'w'); // begins afresh, so it cannot grow for ever
    const args = ['-D', data, '-h', '127.0.0.1', '-k', '', '-p', String(port)];
    if (!options.durable) args.push('-F', '-c', 'full_page_writes=off', '-c', 'synchronous_commit=off');
    const child = spawn(join(place.native, 'bin', 'postgres'), args, spawnOptions(place, log));
    closeSync(log);
    child.unref();
    if (await untilReady(child, data, signal)) return { pid: child.pid ?? 0, port };
    reason = lastServerError(logPath);
    if (!/TCP\/IP|shared memory/.test(reason ?? '')) break;
    await delay(retryMs);
  }
  throw new StartError(`Postgres did not start: ${reason ?? 'no reason given'} (log: ${logPath}).`);
}

/** False when it exited instead. */
async function untilReady(child: ChildProcess, data: string, signal?: AbortSignal): Promise<boolean> {
  let gone = false;
  child.once('exit', () => {
    gone = true;
  });
  child.once('error', () => {
    gone = true;
  });
  const deadline = Date.now() + startTimeoutMs;
  while (!gone) {
    const running = readPostmasterFile(data);
    if (running?.pid === child.pid && running?.status === 'ready') return true;
    if (signal?.aborted || Date.now() > deadline) {
      // Not `isPostmaster`: a server that has only just been started does not work in its directory yet.
      await stopServer(child.pid ?? 0, () => !gone);
      signal?.throwIfAborted();
      return false;
    }
    await delay(pollMs);
  }
  return false;
}

async function stopServer(pid: number, runs: () => boolean): Promise<void> {
  for (const name of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    if (!runs()) return;
    sendSignal(pid, name);
    const deadline = Date.now() + stopTimeoutMs;
    while (runs() && Date.now() < deadline) await delay(pollMs);
  }
}

/** A negative pid names a whole process group; 0, our own one, is never meant. */
function sendSignal(pid: number, name: NodeJS.Signals): void {
  if (pid === 0) return;
  try {
    process.kill(pid, name);
  } catch {
    // already gone
  }
}
