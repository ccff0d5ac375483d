import type { SecureContext, ConnectionOptions as TlsOptions } from 'node:tls';
import type { ClusterOptions, RedisOptions } from 'ioredis';
import type { RedisTarget, RedisTls } from '../../core/net/redis-url.ts';
import type { OnCertificates } from '../system/certificate-files.ts';
import { CertificateFilesError, followCertificates } from '../system/certificate-files.ts';

/** A cache that takes longer is worth less than the call it would save: see docs/decisions/0008. */
const defaultCommandTimeoutMs = 40;
const connectTimeoutMs = 1000;
/** Half-open sockets are given up after this long without an answer; reconnecting finds out what is left. */
const socketTimeoutMs = 2000;
const sentinelTimeoutMs = 1000;
const firstReconnectMs = 50;
/** Bounds the time between the return of the server and the first hit. */
const longestReconnectMs = 2000;
/** The same after a fail-over, where the new primary is promised within 2 s. */
const longestSearchMs = 500;
/** How old the map of a cluster may be, and so how long a shard that failed over is missed. */
const mapAgeMs = 1000;
/** One for a shard that moved, one for one that is moving; more would outlast the time for a command. */
const mostRedirections = 3;

/** What is the caller's choice of each connection to a server. */
export interface ServerOptions {
  /** Longest wait for one command, and so the most that a sick cache costs a request. */
  readonly commandTimeoutMs?: number;
  /** Of connections whose URLs name the same files one is enough. */
  readonly onCertificates?: OnCertificates;
}

/** Half of the delay is random, so that replicas do not come back in step. */
function delayMs(attempt: number, longestMs: number): number {
  const wholeMs = Math.min(firstReconnectMs * 2 ** Math.min(attempt, 16), longestMs);
  return wholeMs * (0.5 + Math.random() / 2);
}

/** Throws CertificateFilesError that names the setting. */
function certificatesOf(tls: RedisTls, onChange?: OnCertificates): () => SecureContext {
  try {
    return followCertificates({ ...tls, keyPassphrase: null }, onChange);
  } catch (error) {
    if (!(error instanceof CertificateFilesError)) throw error;
    throw new CertificateFilesError(
      `REDIS_URL names certificates or a key that cannot be used (${error.message}).`,
    );
  }
}

/** Throws CertificateFilesError. */
function tlsOptions(tls: RedisTls, onCertificates?: OnCertificates): TlsOptions {
  const options: TlsOptions = { rejectUnauthorized: true };
  if (tls.serverName !== null) options.servername = tls.serverName;
  if (tls.rootCertPath === null && tls.certPath === null) return options;
  const get = certificatesOf(tls, onCertificates);
  // The driver copies the options for each connection, which asks anew.
  return Object.defineProperty(options, 'secureContext', { get, enumerable: true });
}

/** What is the same of every connection to a server that keeps data. Throws CertificateFilesError. */
function serverOptions(
  target: RedisTarget,
  { commandTimeoutMs = defaultCommandTimeoutMs, onCertificates }: ServerOptions,
) {
  return {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: commandTimeoutMs,
    connectTimeout: connectTimeoutMs,
    socketTimeout: socketTimeoutMs,
    connectionName: 'model-gateway',
    ...(target.user === null ? {} : { username: target.user }),
    ...(target.password === null ? {} : { password: target.password }),
    ...(target.tls === null ? {} : { tls: tlsOptions(target.tls, onCertificates) }),
    // After a failover the old primary is read-only; the address now leads to another server.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  } satisfies RedisOptions;
}

/** One server, or the one that sentinels name. Throws CertificateFilesError. */
export function singleOptions(target: RedisTarget, options: ServerOptions = {}) {
  const common = { ...serverOptions(target, options), db: target.database };
  const [first] = target.hosts;
  if (target.kind === 'server') {
    const retryStrategy = (attempt: number) => delayMs(attempt, longestReconnectMs);
    return { ...common, ...first, retryStrategy } satisfies RedisOptions;
  }
  return {
    ...common,
    retryStrategy: (attempt: number) => delayMs(attempt, longestSearchMs),
    sentinels: [...target.hosts],
    name: target.primaryName ?? '',
    ...(target.sentinelUser === null ? {} : { sentinelUsername: target.sentinelUser }),
    ...(target.sentinelPassword === null ? {} : { sentinelPassword: target.sentinelPassword }),
    ...(common.tls === undefined ? {} : { sentinelTLS: common.tls, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: sentinelTimeoutMs,
    sentinelRetryStrategy: (attempt: number) => delayMs(attempt, longestSearchMs),
    // Told of another primary while it looks for one, the driver would give up for good. The old one says READONLY,
    // closes, or is silent: each makes it look again.
    failoverDetector: false,
  } satisfies RedisOptions;
}

/** A cluster. What cannot be served at once is refused rather than waited for. Throws CertificateFilesError. */
export function clusterOptions(target: RedisTarget, options: ServerOptions = {}) {
  return {
    redisOptions: serverOptions(target, options),
    enableOfflineQueue: false,
    clusterRetryStrategy: (attempt: number) => delayMs(attempt, longestSearchMs),
    maxRedirections: mostRedirections,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    slotsRefreshTimeout: connectTimeoutMs,
    slotsRefreshInterval: mapAgeMs,
  } satisfies ClusterOptions;
}
