import { Redis } from 'ioredis';

/** A cache that takes longer is worth less than the call it would save: docs/decisions give it 50 ms. */
const defaultCommandTimeoutMs = 40;
const connectTimeoutMs = 1000;
/** Half-open sockets are given up after this long without an answer; reconnecting finds out what is left. */
const socketTimeoutMs = 2000;
const firstReconnectMs = 50;
/** Bounds the time between the return of the server and the first hit. */
const longestReconnectMs = 2000;

export interface RedisOptions {
  /** Longest wait for one command, and so the most that a sick cache costs a request. */
  readonly commandTimeoutMs?: number;
  readonly onUp?: () => void;
  /** Once per loss, not once per failed attempt to come back; the message holds no credentials. */
  readonly onDown?: (message: string) => void;
}

/**
 * A connection for what may fail: nothing is queued while the server is away, no command waits longer than
 * 40 ms, and it reconnects for ever. Returns at once; throws only for a URL that is none.
 */
export function connectRedis(url: string, options: RedisOptions = {}): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: options.commandTimeoutMs ?? defaultCommandTimeoutMs,
    connectTimeout: connectTimeoutMs,
    socketTimeout: socketTimeoutMs,
    connectionName: 'model-gateway',
    // Half of the delay is random, so that replicas do not come back in step.
    retryStrategy: (attempt) =>
      Math.min(firstReconnectMs * 2 ** Math.min(attempt, 16), longestReconnectMs) * (0.5 + Math.random() / 2),
    // After a failover the old primary is read-only; the address now leads to another server.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
  let down = false;
  let lastError = 'the connection was closed';
  redis.on('error', (error: NodeJS.ErrnoException) => {
    lastError = error.code ?? error.message;
  });
  redis.on('ready', () => {
    down = false;
    options.onUp?.();
  });
  // Not `close`, which also comes when we close it ourselves.
  redis.on('reconnecting', () => {
    if (!down) options.onDown?.(lastError);
    down = true;
  });
  return redis;
}

/** An error that the server answered with (OOM, READONLY, NOAUTH, LOADING), as opposed to no answer. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}
