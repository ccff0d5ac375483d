import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../../../src/dev/free-port.ts';
import { eventually } from '../measure/eventually.ts';
import { findProgram } from '../stage/programs.ts';
import type { ServerProcess } from './server-process.ts';
import { startServerProcess } from './server-process.ts';

export interface RedisServer extends ServerProcess {
  readonly port: number;
}

function redisProgram(): string {
  const named = process.env['TEST_REDIS_SERVER'] ?? 'redis-server';
  const program = named.includes('/') ? named : findProgram(named);
  if (program === null) throw new Error(`${named} is not installed`);
  return program;
}

/** A server in memory; `lines` are more of its configuration. On `port` 0 of the configuration it listens elsewhere. */
export async function startRedisServer(
  lines: readonly string[],
  given: { port?: number; mode?: 'sentinel' } = {},
): Promise<RedisServer> {
  const port = given.port ?? (await freePort());
  const folder = mkdtempSync(join(tmpdir(), 'gw-redis-'));
  const file = join(folder, 'server.conf');
  const data = given.mode === 'sentinel' ? [] : ['save ""', 'appendonly no'];
  const tls = lines.some((line) => line.startsWith('tls-port '));
  const all = [
    ...(tls ? ['port 0'] : [`port ${port}`]),
    'bind 127.0.0.1',
    `dir ${folder}`,
    ...data,
    ...lines,
  ];
  writeFileSync(file, `${all.join('\n')}\n`);
  const args = given.mode === 'sentinel' ? [file, '--sentinel'] : [file];
  const server = await startServerProcess(redisProgram(), args, port);
  return {
    ...server,
    port,
    close: async () => {
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The answer of one command, as a text. */
export async function ask(port: number, command: string, ...args: string[]): Promise<string> {
  const redis = new Redis(port, '127.0.0.1', { retryStrategy: null, maxRetriesPerRequest: 0 });
  redis.on('error', () => {});
  try {
    return JSON.stringify(await redis.call(command, ...args));
  } finally {
    redis.disconnect();
  }
}

/** Resolves once it answers with these words; a server whose role changes closes the connections it has. */
export function untilSays(port: number, words: string, ...command: [string, ...string[]]): Promise<true> {
  return eventually(async () => (await ask(port, ...command).catch(() => '')).includes(words) || undefined);
}

const primaryName = 'cache';
const sentinelCount = 3;

export interface SentinelWorld {
  /** Of the gateway: all sentinels, and the name of the primary. */
  readonly url: string;
  /** Crashes the primary; resolves with the port of the one that took over, as soon as it did. */
  failOver(): Promise<number>;
  /** After `failOver`: what crashed is back, empty, as the replica of the other; resolves when `failOver` works again. */
  renewReplica(): Promise<void>;
  close(): Promise<void>;
}

/** A primary, a replica and three sentinels that give the primary up after half a second. */
export async function startSentinels(): Promise<SentinelWorld> {
  const started: RedisServer[] = [];
  const start = async (lines: readonly string[], given: { port?: number; mode?: 'sentinel' } = {}) => {
    const server = await startRedisServer(lines, given);
    started.push(server);
    return server;
  };
  const close = async () => {
    for (const one of started.splice(0).reverse()) await one.close();
  };
  try {
    let primary = await start([]);
    let replica = await start([`replicaof 127.0.0.1 ${primary.port}`]);
    const watched = [
      `sentinel monitor ${primaryName} 127.0.0.1 ${primary.port} 2`,
      `sentinel down-after-milliseconds ${primaryName} 500`,
      `sentinel failover-timeout ${primaryName} 3000`,
    ];
    const sentinels: RedisServer[] = [];
    while (sentinels.length < sentinelCount) sentinels.push(await start(watched, { mode: 'sentinel' }));
    await untilWatched(primary, replica, sentinels);
    return {
      url: `redis://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}?sentinel=${primaryName}`,
      failOver: async () => {
        await primary.close();
        await untilSays(replica.port, 'role:master', 'INFO', 'replication');
        return replica.port;
      },
      renewReplica: async () => {
        started.splice(started.indexOf(primary), 1);
        const back = await start([`replicaof 127.0.0.1 ${replica.port}`], { port: primary.port });
        [primary, replica] = [replica, back];
        await untilWatched(primary, replica, sentinels);
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Resolves when the replica has its data, and every sentinel knows of both servers and of the other sentinels. */
function untilWatched(
  primary: RedisServer,
  replica: RedisServer,
  sentinels: readonly RedisServer[],
): Promise<true> {
  return eventually(async () => {
    const info = await ask(replica.port, 'INFO', 'replication');
    if (!info.includes('master_link_status:up')) return undefined;
    for (const { port } of sentinels) {
      const seen = await ask(port, 'SENTINEL', 'MASTER', primaryName);
      const knows = (what: string, value: number) => new RegExp(`"${what}"[:,]"${value}"`).test(seen);
      if (!knows('port', primary.port) || !knows('num-slaves', 1)) return undefined;
      if (!knows('num-other-sentinels', sentinelCount - 1)) return undefined;
      const replicas = await ask(port, 'SENTINEL', 'REPLICAS', primaryName);
      if (/"flags"[:,]"[^"]*down/.test(replicas)) return undefined;
    }
    return true;
  });
}
