import type { Socket } from 'node:net';
import { Cluster, Redis } from 'ioredis';
import type { RedisHost } from '../../core/net/redis-url.ts';
import { parseRedisUrl } from '../../core/net/redis-url.ts';
import type { ServerOptions } from './connection-options.ts';
import { clusterOptions, singleOptions } from './connection-options.ts';

/** Told in the server's own words, which hold no value, of each command that it refuses for its own reasons. */
export type OnRefusal = (words: string) => void;

/** Commands are the same, be it one server, the one that sentinels name, or a cluster. */
export type RedisConnection = Redis | Cluster;

export interface RedisOptions extends ServerOptions {
  readonly onUp?: () => void;
  /** Once per loss, not once per failed attempt to come back; the message holds no credentials. */
  readonly onDown?: (message: string) => void;
  /** Each server that is connected to, of which sentinels and clusters name others than the URL. */
  readonly onServer?: (server: RedisHost) => void;
}

/**
 * A connection for what may fail: nothing is queued while the server is away, no command waits longer than
 * 40 ms, and it reconnects for ever. Returns at once. Throws RedisUrlError for a URL that is none, and
 * CertificateFilesError for files of its that cannot be used.
 */
export function connectRedis(url: string, options: RedisOptions = {}): RedisConnection {
  const target = parseRedisUrl(url);
  const { onServer = () => {} } = options;
  let redis: RedisConnection;
  if (target.kind === 'cluster') {
    redis = new Cluster([...target.hosts], clusterOptions(target, options));
    redis.on('+node', ({ options: { host = '', port = 0 } }: Redis) => onServer({ host, port }));
  } else {
    const single = new Redis(singleOptions(target, options));
    single.on('connect', () => {
      const { remoteAddress: host, remotePort: port } = single.stream as Partial<Socket>;
      if (host !== undefined && port !== undefined) onServer({ host, port });
    });
    redis = single;
  }
  tellChanges(redis, options);
  return redis;
}

function tellChanges(redis: RedisConnection, options: RedisOptions): void {
  let down = false;
  let lastError = 'the connection was closed';
  let lacksDatabase: string | null = null;
  redis.on('error', (error: NodeJS.ErrnoException) => {
    lastError = error.code ?? error.message;
    if (!isReply(error) || commandOf(error) !== 'select') return;
    // The driver would go on in database 0, which is somebody else's.
    lacksDatabase = error.message;
    redis.disconnect(true);
  });
  redis.on('ready', () => {
    down = false;
    lacksDatabase = null;
    options.onUp?.();
  });
  // Not `close`, which also comes when we close it ourselves.
  redis.on('reconnecting', () => {
    if (!down) options.onDown?.(lacksDatabase ?? lastError);
    down = true;
  });
}

const commandOf = (error: Error): unknown =>
  (error as { readonly command?: { readonly name?: unknown } }).command?.name;

/** An error that the server answered with (OOM, READONLY, NOAUTH, LOADING), as opposed to no answer. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}
