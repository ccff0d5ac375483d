import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { watchTablesConfigMap } from './adapters/kubernetes/configmap-tables.ts';
import type { TablesListeners, TablesSource } from './adapters/last-good-tables.ts';
import { addProviderKey, deleteProviderKey, listProviderKeys } from './adapters/postgres/provider-keys.ts';
import { readLogs } from './adapters/postgres/request-logs-query.ts';
import { readStats } from './adapters/postgres/stats-query.ts';
import { registerUser } from './adapters/postgres/users.ts';
import type { Sealer } from './adapters/sealer.ts';
import { createSealer } from './adapters/sealer.ts';
import { createSystemClock } from './adapters/system-clock.ts';
import { watchTablesFile } from './adapters/tables-file.ts';
import { createUpstreamHttp } from './adapters/upstream-http.ts';
import type { ChatIo } from './chat/answer-chat.ts';
import { AnswerCache } from './chat/cached-answer.ts';
import { CooldownBook } from './chat/cooldown.ts';
import { endpointsOf } from './chat/endpoints.ts';
import type { Clock, UpstreamTransport } from './chat/ports.ts';
import type { Endpoint } from './core/outbound-policy.ts';
import { outboundPolicy } from './core/outbound-policy.ts';
import { drain } from './drain.ts';
import { createAdminServer } from './http/admin-server.ts';
import { Life } from './http/life.ts';
import { openApiDocument } from './http/openapi.ts';
import { registrationGuard } from './http/registration-policy.ts';
import type { RoutesIo } from './http/routes.ts';
import { registerRoutes } from './http/routes.ts';
import { createServer } from './http/server.ts';
import { providers } from './providers/registry.ts';
import type { Settings } from './settings.ts';
import { SettingsError } from './settings.ts';
import type { Stores } from './stores.ts';
import { openStores, storeEndpoints } from './stores.ts';
import { createLogger } from './telemetry/logger.ts';
import { Metrics } from './telemetry/metrics.ts';
import { watchGauges } from './telemetry/watch-gauges.ts';

/** The shipped tables; two places use them: this process and the chart. */
const defaultTables = new URL('../charts/model-gateway/files/tables.yaml', import.meta.url).pathname;
/** Keys whose server is remembered to refuse `stream_options`. */
const maxRefusals = 10_000;

export interface RunningGateway {
  readonly url: string;
  readonly adminUrl: string;
  /** Drains and stops. A second call hurries the first. */
  close(): Promise<void>;
}

/** Starts both listeners. Stores may still be away; /readyz says so. Throws SettingsError on a bad setting. */
export async function startGateway(settings: Settings): Promise<RunningGateway> {
  if (settings.databaseUrl === null) {
    throw new SettingsError('DATABASE_URL is not set. (For a trial without a database: npm start.)');
  }
  if (settings.sealingKeys.length === 0) {
    throw new SettingsError(
      'GW_SEALING_KEYS is not set: kid:base64(32 bytes), for instance v1:$(openssl rand -base64 32).',
    );
  }
  const log = createLogger(settings.logLevel);
  const clock = createSystemClock();
  const sealer = createSealer(settings.sealingKeys);
  const own: Endpoint[] = await storeEndpoints(settings);
  const upstream = createUpstreamHttp(
    outboundPolicy(settings.outboundPolicy, settings.outboundAllowedCidrs, own),
  );
  const tables = await openTables(settings, clock, log);
  const stores = await openStores({ settings, databaseUrl: settings.databaseUrl, sealer, clock, log });
  const metrics = new Metrics();
  const life = new Life();
  watchGauges(metrics, { tables, stores, life });
  const chat = chatIo({ settings, stores, sealer, clock, metrics, transport: upstream });
  const app = await createServer(settings, life, log);
  await registerRoutes(app, { ...chat, ...routesIo({ settings, stores, sealer, clock, tables, life }) });
  const admin = createAdminServer(
    {
      life,
      tables: () => tables.status(),
      storeReady: stores.gate.state,
      metrics: () => metrics.registry.metrics(),
      metricsContentType: metrics.registry.contentType,
      openApi: openApiDocument,
    },
    log,
  );
  const stop = stopper({ app, admin, life, settings, stores, tables, upstream, log });
  try {
    const adminUrl = await listen(admin, settings.adminHost, settings.adminPort, own);
    const url = await listen(app, settings.host, settings.port, own);
    log.info({ url, adminUrl }, 'listening');
    return { url, adminUrl, close: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The tables' source: the API watch of a ConfigMap, or a file whose directory is watched. */
function openTables(settings: Settings, clock: Clock, log: Logger): Promise<TablesSource> {
  const listeners: TablesListeners = {
    onReload: ({ generation, hash }) => log.info({ generation, hash }, 'tables reloaded'),
    onProblem: (problem) => log.error({ problem }, 'new tables are not usable; the last good ones stay'),
  };
  if (settings.tablesConfigMap === null) {
    return watchTablesFile(settings.tablesFile ?? defaultTables, listeners);
  }
  return watchTablesConfigMap({ ...listeners, ...settings.tablesConfigMap, wallMs: clock.wallMs });
}

interface Parts {
  readonly settings: Settings;
  readonly stores: Stores;
  readonly sealer: Sealer;
  readonly clock: Clock;
}

function chatIo(parts: Parts & { readonly metrics: Metrics; readonly transport: UpstreamTransport }): ChatIo {
  const { settings, stores, sealer, clock, metrics, transport } = parts;
  const refusals = new LRUCache<string, true>({ max: maxRefusals });
  return {
    transport,
    providers,
    endpointOf: endpointsOf(providers, settings.vendorBaseUrls),
    openKey: sealer.open,
    clock,
    newId: randomUUID,
    withoutStreamOptions: {
      has: (keyId) => refusals.has(keyId),
      add: (keyId) => refusals.set(keyId, true),
    },
    cooldown: new CooldownBook(clock.monotonicMs),
    telemetry: metrics,
    requestLog: stores.requestLog,
    cache: new AnswerCache(stores.answers),
  };
}

function routesIo(
  parts: Parts & { readonly tables: TablesSource; readonly life: Life },
): Omit<RoutesIo, keyof ChatIo> {
  const { settings, stores, sealer, clock, tables, life } = parts;
  const { pool, queryPool, accounts } = stores;
  return {
    accounts,
    tables: () => tables.current(),
    life,
    refreshAccount: (keyHash) => accounts.refresh(keyHash),
    mayRegister: registrationGuard(
      {
        mode: settings.registration,
        token: settings.registrationToken,
        perMinute: settings.registrationsPerMinute,
        perMinutePerIp: settings.registrationsPerMinutePerIp,
      },
      clock.monotonicMs,
    ),
    registerUser: (user) => registerUser(pool, user),
    addProviderKey: async (userId, key) => {
      const row = await addProviderKey(pool, sealer, userId, key);
      accounts.invalidate(userId);
      return row;
    },
    listProviderKeys: (userId) => listProviderKeys(pool, userId),
    deleteProviderKey: async (userId, keyId) => {
      await deleteProviderKey(pool, userId, keyId);
      accounts.invalidate(userId);
    },
    readLogs: (userId, query) => readLogs(queryPool, userId, query),
    readStats: (userId, query) => readStats(queryPool, userId, query),
  };
}

/** Listens and returns the address; it joins the addresses no user may reach through us. */
async function listen(app: FastifyInstance, host: string, port: number, own: Endpoint[]): Promise<string> {
  await app.listen({ host, port });
  const bound = app.server.address() as AddressInfo;
  own.push({ address: bound.address, port: bound.port });
  const shown = bound.address === '0.0.0.0' || bound.address === '::' ? '127.0.0.1' : bound.address;
  return `http://${shown.includes(':') ? `[${shown}]` : shown}:${bound.port}`;
}

interface Running {
  readonly app: FastifyInstance;
  readonly admin: FastifyInstance;
  readonly life: Life;
  readonly settings: Settings;
  readonly stores: Stores;
  readonly tables: TablesSource;
  readonly upstream: { close(): Promise<void> };
  readonly log: Logger;
}

function stopper(running: Running): () => Promise<void> {
  const hurry = new AbortController();
  let stopped: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    const { app, admin, life, settings, stores, tables, upstream, log } = running;
    log.info({ active: life.activeCount }, 'draining');
    await drain(app, life, { delayMs: settings.drainDelayMs, drainMs: settings.drainMs }, hurry.signal);
    await upstream.close();
    await stores.close();
    tables.close();
    await admin.close();
    log.info('stopped');
  };
  return () => {
    if (stopped !== null) hurry.abort();
    stopped ??= stop();
    return stopped;
  };
}
