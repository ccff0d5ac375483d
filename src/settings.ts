import { readFileSync } from 'node:fs';
import { DatabaseUrlError, parseDatabaseUrl } from './core/net/database-url.ts';
import type { Egress } from './core/net/egress.ts';
import type { Network } from './core/net/network.ts';
import { readNetworks } from './core/net/network.ts';
import { EgressError } from './core/net/no-proxy.ts';
import { parseRedisUrl, RedisUrlError } from './core/net/redis-url.ts';
import type { VendorName } from './core/provider-name.ts';
import type { SealingKey } from './core/secret/sealing-key.ts';
import { parseSealingKeys } from './core/secret/sealing-key.ts';
import { Secret } from './core/secret/secret.ts';
import { readEgress, withoutLowerCase } from './egress-settings.ts';
import { environmentSchema, fileVariants, mistakeIn } from './environment.ts';
import type { IgnoredVariable } from './ignored-variables.ts';
import { ignoredVariables } from './ignored-variables.ts';
import type { KubernetesApi } from './kubernetes-api.ts';
import { readKubernetesApi } from './kubernetes-api.ts';
import type { ProcessLimits } from './process-limits.ts';
import { processLimits } from './process-limits.ts';
import type { IdleSetting } from './setting-conflicts.ts';
import { conflictIn, idleSettings } from './setting-conflicts.ts';
import type { TracingSettings } from './tracing-settings.ts';
import { readTracing } from './tracing-settings.ts';

interface TablesConfigMap {
  readonly namespace: string;
  readonly name: string;
  /** Absent: the usual one. */
  readonly entry?: string;
}

export interface Settings extends ProcessLimits {
  readonly host: string;
  readonly port: number;
  readonly adminHost: string;
  readonly adminPort: number;
  readonly profile: 'server' | 'sidecar';
  readonly databaseUrl: string | null;
  /** Serves LISTEN and advisory locks, which a transaction-mode pooler breaks. */
  readonly databaseDirectUrl: string | null;
  readonly databasePool: number;
  readonly migrateAtBoot: boolean;
  readonly redisUrl: string | null;
  /** The first one seals, all open. Empty when none is configured. */
  readonly sealingKeys: readonly SealingKey[];
  readonly tablesFile: string | null;
  readonly tablesConfigMap: TablesConfigMap | null;
  /** Only what the operator set; the provider's own default otherwise. */
  readonly vendorBaseUrls: Readonly<Partial<Record<VendorName, string>>>;
  readonly upstreamClient: 'own' | 'undici';
  readonly outboundPolicy: 'public-only' | 'allow-private';
  readonly outboundAllowed: readonly Network[];
  /** Proxies on the way to providers; stores, telemetry and the Kubernetes API are reached without. */
  readonly egress: Egress;
  /** Where the Kubernetes API listens, as the kubelet tells every container; empty outside of a cluster. */
  readonly kubernetesApi: KubernetesApi;
  readonly spoolDir: string;
  readonly spoolBytes: number;
  readonly spoolFull: 'refuse' | 'drop';
  readonly logRetentionDays: number;
  /** Where rows are stored, in the operator's words; null: not said. */
  readonly storageRegion: string | null;
  /** Signs reports; only the command that makes them reads it. */
  readonly evidenceKey: Secret | null;
  readonly dataDir: string;
  readonly drainDelayMs: number;
  readonly drainMs: number;
  readonly bodyLimitBytes: number;
  readonly trustedProxyHops: number;
  readonly registration: 'open' | 'token' | 'closed';
  readonly registrationToken: Secret | null;
  /** Null: there is no admin API. */
  readonly adminToken: Secret | null;
  /** 0: no limit. */
  readonly registrationsPerMinute: number;
  readonly registrationsPerMinutePerIp: number;
  /** 0: not watched. */
  readonly maxEventLoopDelayMs: number;
  readonly logLevel: string;
  /** Of a sidecar without a database. */
  readonly serviceKey: Secret | null;
  readonly providerKeysFile: string | null;
  readonly tracing: TracingSettings;
  /** Told at the start: whoever set them believes that they count. */
  readonly ignored: readonly IgnoredVariable[];
  readonly idle: readonly IdleSetting[];
}

/** A setting that cannot be used; the message is one line that names it. */
export class SettingsError extends Error {}

function readSealingKeys(text: string): readonly SealingKey[] {
  const keys = parseSealingKeys(text);
  if (keys !== null) return keys;
  throw new SettingsError(
    'GW_SEALING_KEYS must be kid:base64(32 bytes)[,kid:base64…] with distinct ids (each key: openssl rand -base64 32).',
  );
}

/** The URL, once it is known to be one that every connection can use. */
function databaseUrl(name: string, text: string | undefined): string | null {
  if (text === undefined) return null;
  try {
    parseDatabaseUrl(text);
  } catch (error) {
    if (error instanceof DatabaseUrlError) throw new SettingsError(`${name} ${error.message}`);
    throw error;
  }
  return text;
}

/** The same for Redis. */
function redisUrl(text: string | undefined): string | null {
  if (text === undefined) return null;
  try {
    parseRedisUrl(text);
  } catch (error) {
    if (error instanceof RedisUrlError) throw new SettingsError(`REDIS_URL ${error.message}`);
    throw error;
  }
  return text;
}

/** Networks of a list. */
function networks(name: string, list: string): readonly Network[] {
  try {
    return readNetworks(list);
  } catch (error) {
    throw error instanceof RangeError ? new SettingsError(`${name}: ${error.message}`) : error;
  }
}

/** What a reader of proxy settings says, as a mistake in the settings. */
function reading<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof EgressError ? new SettingsError(error.message) : error;
  }
}

/**
 * Drivers of Postgres take what a URL leaves open from variables like PGOPTIONS and PGSSLMODE, and not the same ones.
 * What connects is said by the URL alone, so they are taken out of `environment`.
 */
export function forgetPostgresVariables(environment: NodeJS.ProcessEnv = process.env): void {
  for (const name of Object.keys(environment)) if (/^PG[A-Z]/.test(name)) delete environment[name];
}

function withFileVariants(environment: NodeJS.ProcessEnv): Record<string, string | undefined> {
  const merged: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(environment)) if (value !== '') merged[name] = value;
  for (const name of fileVariants) {
    const path = merged[`${name}_FILE`];
    if (path === undefined) continue;
    if (merged[name] !== undefined)
      throw new SettingsError(`${name} and ${name}_FILE are both set; keep one.`);
    try {
      merged[name] = readFileSync(path, 'utf8').trim();
    } catch (error) {
      throw new SettingsError(
        `${name}_FILE: cannot read ${path} (${(error as NodeJS.ErrnoException).code}).`,
      );
    }
  }
  return merged;
}

/** Of the form that the schema of the environment asks for. */
function readTablesConfigMap(text = ''): TablesConfigMap | null {
  const [namespace, name, entry] = text.split('/');
  if (namespace === undefined || name === undefined) return null;
  return { namespace, name, ...(entry === undefined ? {} : { entry }) };
}

const secretOf = (text: string | undefined): Secret | null => (text === undefined ? null : new Secret(text));

/** Where rows are stored, whatever the other settings are. Throws SettingsError with one line. */
export function readStorageRegion(environment: NodeJS.ProcessEnv = process.env): string | null {
  const given = { GW_STORAGE_REGION: environment['GW_STORAGE_REGION'] || undefined };
  const parsed = environmentSchema.pick({ GW_STORAGE_REGION: true }).safeParse(given);
  if (!parsed.success) throw new SettingsError(mistakeIn(parsed.error, given));
  return parsed.data.GW_STORAGE_REGION ?? null;
}

/** Reads the environment once; tracing apart, the only reader of process.env. Throws SettingsError with one line. */
export function readSettings(environment: NodeJS.ProcessEnv = process.env): Settings {
  const given = withFileVariants(reading(() => withoutLowerCase(environment)));
  const parsed = environmentSchema.safeParse(given);
  if (!parsed.success) throw new SettingsError(mistakeIn(parsed.error, given));
  const env = parsed.data;
  const url = databaseUrl('DATABASE_URL', env.DATABASE_URL);
  // A sidecar serves its own pod only.
  const host = env.GW_HOST ?? (env.GW_PROFILE === 'sidecar' ? '127.0.0.1' : '0.0.0.0');
  const conflict = conflictIn(env, host);
  if (conflict !== null) throw new SettingsError(conflict);
  const baseUrls = {
    openai: env.GW_OPENAI_BASE_URL,
    anthropic: env.GW_ANTHROPIC_BASE_URL,
    together: env.GW_TOGETHER_BASE_URL,
    sarvam: env.GW_SARVAM_BASE_URL,
  } satisfies Record<VendorName, string | undefined>;
  return {
    host,
    port: env.PORT,
    adminHost: env.GW_ADMIN_HOST,
    adminPort: env.GW_ADMIN_PORT,
    profile: env.GW_PROFILE,
    databaseUrl: url,
    databaseDirectUrl: databaseUrl('DATABASE_DIRECT_URL', env.DATABASE_DIRECT_URL) ?? url,
    databasePool: env.GW_DATABASE_POOL,
    migrateAtBoot: env.GW_MIGRATE === 'boot',
    redisUrl: redisUrl(env.REDIS_URL),
    sealingKeys: readSealingKeys(env.GW_SEALING_KEYS ?? ''),
    tablesFile: env.GW_TABLES_FILE ?? null,
    tablesConfigMap: readTablesConfigMap(env.GW_TABLES_CONFIGMAP),
    vendorBaseUrls: Object.fromEntries(Object.entries(baseUrls).filter(([, url]) => url !== undefined)),
    upstreamClient: env.GW_UPSTREAM_CLIENT,
    outboundPolicy: env.GW_OUTBOUND_POLICY,
    outboundAllowed: networks('GW_OUTBOUND_ALLOWED_CIDRS', env.GW_OUTBOUND_ALLOWED_CIDRS),
    egress: reading(() => readEgress(env)),
    kubernetesApi: readKubernetesApi(environment),
    spoolDir: env.GW_SPOOL_DIR ?? `${env.GW_DATA_DIR}/spool`,
    spoolBytes: env.GW_SPOOL_BYTES,
    spoolFull: env.GW_SPOOL_FULL,
    logRetentionDays: env.GW_LOG_RETENTION_DAYS,
    storageRegion: env.GW_STORAGE_REGION ?? null,
    evidenceKey: env.GW_EVIDENCE_KEY === undefined ? null : new Secret(env.GW_EVIDENCE_KEY),
    dataDir: env.GW_DATA_DIR,
    drainDelayMs: env.GW_DRAIN_DELAY_SECONDS * 1000,
    drainMs: env.GW_DRAIN_SECONDS * 1000,
    bodyLimitBytes: env.GW_BODY_LIMIT_BYTES,
    trustedProxyHops: env.GW_TRUSTED_PROXY_HOPS,
    registration: env.GW_REGISTRATION,
    registrationToken: secretOf(env.GW_REGISTRATION_TOKEN),
    adminToken: secretOf(env.GW_ADMIN_TOKEN),
    registrationsPerMinute: env.GW_REGISTRATIONS_PER_MINUTE,
    registrationsPerMinutePerIp: env.GW_REGISTRATIONS_PER_MINUTE_PER_IP,
    maxEventLoopDelayMs: env.GW_MAX_EVENT_LOOP_DELAY_MS,
    ...processLimits(environment, env),
    logLevel: env.GW_LOG_LEVEL,
    serviceKey: secretOf(env.GW_SERVICE_KEY),
    providerKeysFile: env.GW_PROVIDER_KEYS_FILE ?? null,
    tracing: readTracing(env),
    ignored: ignoredVariables(environment),
    idle: idleSettings(env),
  };
}
