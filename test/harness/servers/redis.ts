import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../../src/dev/free-port.ts';
import { patient } from '../measure/crowding.ts';
import { findProgram } from '../stage/programs.ts';
import { signalProcess } from './signals.ts';

const START_TIMEOUT_MS = 60_000;
const POLL_MS = 5;

export interface RedisProcess {
  /** The same before and after a restart. */
  readonly url: string;
  readonly pid: number;
  /** Freezes the server: sockets stay open, nothing answers. */
  stopSignal(): void;
  continueSignal(): void;
  /** A crash. */
  kill(): Promise<void>;
  /** After `kill`: the same port, no data. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** The address of the run's shared server. Use key prefixes or a database number of your own. */
export function redisUrl(): string {
  const url = process.env['TEST_REDIS_URL'];
  if (url === undefined) throw new Error('TEST_REDIS_URL is not set: run the tests through "npm test".');
  return url;
}

/** An own server on a free port, in memory only; `args` are added to its command line. */
export async function startRedis(args: readonly string[] = []): Promise<RedisProcess> {
  const port = await freePort();
  let server = await spawnRedis(port, args);
  const pid = () => server.pid ?? 0;
  const end = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.ref(); // so that the wait keeps us alive
    const gone = once(server, 'exit');
    signalProcess(pid(), 'SIGKILL'); // works on a frozen one too, and there is nothing to save
    await gone;
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return pid();
    },
    stopSignal: () => signalProcess(pid(), 'SIGSTOP'),
    continueSignal: () => signalProcess(pid(), 'SIGCONT'),
    kill: end,
    async start() {
      server = await spawnRedis(port, args);
    },
    close: end,
  };
}

async function spawnRedis(port: number, args: readonly string[]): Promise<ChildProcess> {
  // `npm test` names the program when it had to unpack one.
  const program =
    process.env['TEST_REDIS_SERVER'] ?? findProgram('redis-server') ?? findProgram('valkey-server');
  if (program === null) throw new Error('redis-server is not installed (Debian package redis-server).');
  const libraries = process.env['TEST_REDIS_LIBRARIES'];
  const env = libraries === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries };
  const folder = mkdtempSync(join(tmpdir(), 'model-gateway-redis-'));
  const fixed = [
    ...['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    ...['--dir', folder, '--pidfile', join(folder, 'redis.pid')],
  ];
  // A process group of its own, so that Ctrl-C reaches the tests first.
  const server = spawn(program, [...fixed, ...args], { stdio: 'ignore', env, detached: true });
  server.once('error', () => {}); // seen below: it never accepts
  server.unref();
  const stopAtExit = () => server.kill('SIGKILL');
  process.once('exit', stopAtExit);
  server.once('exit', () => {
    process.off('exit', stopAtExit);
    rmSync(folder, { recursive: true, force: true });
  });
  const deadline = Date.now() + patient(START_TIMEOUT_MS);
  while (!(await accepts(port))) {
    if (server.exitCode !== null || Date.now() > deadline)
      throw new Error(`${program} did not start on ${port}.`);
    await delay(POLL_MS);
  }
  return server;
}

/** Redis loads nothing here, so an open port is a ready server. */
function accepts(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => done(true)).once('error', () => done(false));
    socket.once('connect', () => socket.destroy());
  });
}
