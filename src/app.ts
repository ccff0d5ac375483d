import { randomInt, randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { createUpstream } from './adapters/create-upstream.ts';
import { lookupBySystem } from './adapters/host-lookup.ts';
import { watchTablesConfigMap } from './adapters/kubernetes/configmap-tables.ts';
import type { TablesListeners, TablesSource } from './adapters/last-good-tables.ts';
import { OwnEndpoints } from './adapters/own-endpoints.ts';
import type { Sealer } from './adapters/sealer.ts';
import { createSealer } from './adapters/sealer.ts';
import { createSystemClock } from './adapters/system-clock.ts';
import { watchTablesFile } from './adapters/tables-file.ts';
import { AnswerBudget, answersHeapShare } from './chat/answer-budget.ts';
import type { ChatIo } from './chat/answer-chat.ts';
import { AnswerCache } from './chat/cached-answer.ts';
import { CooldownBook } from './chat/cooldown.ts';
import { endpointsOf } from './chat/endpoints.ts';
import type { Clock, UpstreamTransport } from './chat/ports.ts';
import { outboundPolicy } from './core/outbound-policy.ts';
import { drain } from './drain.ts';
import { createAdminServer } from './http/admin-server.ts';
import { BodyBudget, bodiesHeapShare } from './http/body-budget.ts';
import { Life } from './http/life.ts';
import { openApiDocument, packageVersion } from './http/openapi.ts';
import type { RoutesIo } from './http/routes.ts';
import { registerRoutes } from './http/routes.ts';
import { createServer } from './http/server.ts';
import { providers } from './providers/registry.ts';
import { sealingKeys } from './sealing-keys.ts';
import type { Settings } from './settings.ts';
import { openSidecarStores } from './sidecar.ts';
import { storeRoutesIo } from './store-routes.ts';
import type { Stores } from './stores.ts';
import { openStores, storeEndpoints } from './stores.ts';
import type { AuditLog } from './telemetry/audit-log.ts';
import { createAuditLog } from './telemetry/audit-log.ts';
import { createLogger } from './telemetry/logger.ts';
import { Metrics } from './telemetry/metrics.ts';
import { StdoutLines } from './telemetry/stdout-lines.ts';
import { Telemetry } from './telemetry/telemetry.ts';
import type { Tracing } from './telemetry/tracing.ts';
import { watchGauges, watchPressure } from './telemetry/watch-gauges.ts';

/** The shipped tables; this process and the chart use them. */
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
export async function startGateway(
  settings: Settings,
  tracing: Tracing | null = null,
): Promise<RunningGateway> {
  const lines = new StdoutLines();
  // A stop that is cut short still says why.
  process.once('exit', () => lines.flush());
  const log = createLogger(settings.logLevel, lines);
  const writeAccess = log.isLevelEnabled('info') ? (line: string) => void lines.write(line) : null;
  const clock = createSystemClock();
  const sealer = createSealer(sealingKeys(settings));
  const own = new OwnEndpoints([...storeEndpoints(settings), ...settings.kubernetesApi], lookupBySystem);
  const policy = outboundPolicy(settings.outboundPolicy, settings.outboundAllowedCidrs, []);
  const upstream = createUpstream(settings.upstreamClient, own.guard(policy));
  await own.start();
  const metrics = new Metrics();
  const tables = await openTables(settings, clock, metrics, log);
  const { databaseUrl } = settings;
  const stores =
    databaseUrl === null
      ? openSidecarStores(settings, sealer, lines)
      : await openStores({ settings, databaseUrl, sealer, clock, log, lines, metrics: metrics.stores });
  const life = new Life(new BodyBudget(settings.heapBytes * bodiesHeapShare));
  const audit = createAuditLog(log, clock.monotonicMs);
  const telemetry = new Telemetry(metrics, writeAccess, audit, tracing, settings.tracing);
  const cooldown = new CooldownBook(clock.monotonicMs);
  watchGauges(metrics, { settings, tables, stores, life, cooldown, upstream, version: packageVersion() });
  const chat = {
    ...chatIo({ settings, stores, sealer, clock, metrics, transport: upstream }),
    cooldown,
    telemetry,
  };
  const app = await createServer(settings, life, log, telemetry);
  watchPressure(metrics, () => app.memoryUsage(), settings, life.bodies, chat.answers);
  const routes = routesIo({ settings, stores, sealer, clock, tables, life, metrics, telemetry });
  await registerRoutes(app, { ...chat, ...routes });
  const admin = createAdminServer(
    {
      life,
      tables: () => tables.status(),
      storeReady: stores.storeState,
      metrics: () => metrics.registry.metrics(),
      metricsContentType: metrics.registry.contentType,
      openApi: openApiDocument,
    },
    log,
  );
  const stop = stopper({
    app,
    admin,
    life,
    settings,
    stores,
    tables,
    upstream,
    own,
    log,
    audit,
    tracing,
    lines,
  });
  try {
    const adminUrl = await listen(admin, settings.adminHost, settings.adminPort, own);
    const url = await listen(app, settings.host, settings.port, own);
    log.info({ url, admin_url: adminUrl }, 'listening');
    lines.flush();
    return { url, adminUrl, close: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The tables' source: the API watch of a ConfigMap, or a file whose directory is watched. */
async function openTables(
  settings: Settings,
  clock: Clock,
  metrics: Metrics,
  log: Logger,
): Promise<TablesSource> {
  const listeners: TablesListeners = {
    onReload: (loaded) => {
      metrics.useTables(loaded);
      log.info({ generation: loaded.generation, hash: loaded.hash }, 'tables reloaded');
    },
    onProblem: (problem) => log.error({ problem }, 'new tables are not usable; the last good ones stay'),
    onBug: (err) => log.error({ err }, 'a bug while following the tables; they stay in use'),
  };
  const { tablesConfigMap, tablesFile } = settings;
  const tables =
    tablesConfigMap === null
      ? await watchTablesFile(tablesFile ?? defaultTables, listeners)
      : await watchTablesConfigMap({ ...listeners, ...tablesConfigMap, wallMs: clock.wallMs });
  metrics.useTables(tables.current());
  return tables;
}

interface Parts {
  readonly settings: Settings;
  readonly stores: Stores;
  readonly sealer: Sealer;
  readonly clock: Clock;
}

function chatIo(
  parts: Parts & { readonly metrics: Metrics; readonly transport: UpstreamTransport },
): Omit<ChatIo, 'cooldown' | 'telemetry' | 'reportBug' | 'reportUnopenedKey'> {
  const { settings, stores, sealer, clock, metrics, transport } = parts;
  const refusals = new LRUCache<string, true>({ max: maxRefusals });
  return {
    transport,
    providers,
    endpointOf: endpointsOf(providers, settings.vendorBaseUrls),
    openKey: metrics.stores.openKey(sealer.open),
    clock,
    newId: randomUUID,
    answers: new AnswerBudget(settings.heapBytes * answersHeapShare, randomInt(2 ** 31)),
    withoutStreamOptions: {
      has: (keyId) => refusals.has(keyId),
      add: (keyId) => refusals.set(keyId, true),
    },
    requestLog: stores.requestLog,
    cache: new AnswerCache(metrics.stores.cache(stores.answers), clock.monotonicMs),
  };
}

function routesIo(
  parts: Parts & {
    readonly tables: TablesSource;
    readonly life: Life;
    readonly metrics: Metrics;
    readonly telemetry: Telemetry;
  },
): Omit<RoutesIo, keyof ChatIo> {
  const { settings, stores, sealer, clock, tables, life, metrics, telemetry } = parts;
  const { accounts } = stores;
  const watch = { metrics: metrics.stores, httpTelemetry: telemetry };
  return {
    accounts,
    tables: () => tables.current(),
    life,
    httpTelemetry: telemetry,
    refreshAccount: (keyHash) => accounts.refresh(keyHash),
    store: storeRoutesIo(settings, stores, sealer, clock.monotonicMs, watch),
  };
}

/** Listens and returns the address; it joins the addresses no user may reach through us. */
async function listen(app: FastifyInstance, host: string, port: number, own: OwnEndpoints): Promise<string> {
  await app.listen({ host, port });
  const bound = app.server.address() as AddressInfo;
  own.addListener({ address: bound.address, port: bound.port });
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
  readonly own: OwnEndpoints;
  readonly log: Logger;
  readonly audit: AuditLog;
  readonly tracing: Tracing | null;
  readonly lines: StdoutLines;
}

function stopper(running: Running): () => Promise<void> {
  const hurry = new AbortController();
  let stopped: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    const { app, admin, life, settings, stores, tables, upstream, own, log, audit, tracing, lines } = running;
    log.info({ active: life.activeCount }, 'draining');
    await drain(app, life, { delayMs: settings.drainDelayMs, drainMs: settings.drainMs }, hurry.signal);
    own.stop();
    await upstream.close();
    await stores.close();
    tables.close();
    await Promise.all([admin.close(), tracing?.close()]);
    audit.tellLeftOut();
    log.info('stopped');
    await lines.close();
  };
  return () => {
    if (stopped !== null) hurry.abort();
    stopped ??= stop();
    return stopped;
  };
}
