import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { watchTablesConfigMap } from '../adapters/kubernetes/configmap-tables.ts';
import { ProcessMemory } from '../adapters/system/process-memory.ts';
import type { Sealer } from '../adapters/system/sealer.ts';
import { createSealer } from '../adapters/system/sealer.ts';
import { queueReader } from '../adapters/system/socket-queues.ts';
import { createSystemClock } from '../adapters/system/system-clock.ts';
import type { TablesListeners, TablesSource } from '../adapters/tables/last-good-tables.ts';
import { watchTablesFile } from '../adapters/tables/tables-file.ts';
import { createUpstream } from '../adapters/upstream/create-upstream.ts';
import { lookupBySystem } from '../adapters/upstream/host-lookup.ts';
import type { NamedEndpoint } from '../adapters/upstream/own-endpoints.ts';
import { OwnEndpoints } from '../adapters/upstream/own-endpoints.ts';
import type { UpstreamHttp } from '../adapters/upstream/upstream-http-port.ts';
import type { Clock } from '../chat/ports.ts';
import type { Egress } from '../core/net/egress.ts';
import { mayPassProxies, proxyEndpoints } from '../core/net/egress.ts';
import { outboundPolicy } from '../core/net/outbound-policy.ts';
import { providerTraits, vendorNames } from '../core/provider-name.ts';
import { SentAnswers, sentHeapShare } from '../http/answers/sent-answers.ts';
import { UnreadAnswers, unreadHeapShare } from '../http/answers/unread-answers.ts';
import { BodyBudget, bodiesHeapShare } from '../http/body/body-budget.ts';
import { Life } from '../http/life.ts';
import { sealingKeys } from '../sealing-keys.ts';
import type { Settings } from '../settings.ts';
import type { AuditLog } from '../telemetry/audit-log.ts';
import { createAuditLog } from '../telemetry/audit-log.ts';
import { createLogger } from '../telemetry/logger.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { StdoutLines } from '../telemetry/stdout-lines.ts';
import { Telemetry } from '../telemetry/telemetry.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { tracingTrouble } from '../telemetry/tracing-trouble.ts';
import { openSidecarStores } from './sidecar.ts';
import type { Stores } from './stores.ts';
import { openStores, storeEndpoints } from './stores.ts';

/** The shipped tables; this process and the chart use them. */
const defaultTables = fileURLToPath(new URL('../../charts/model-gateway/files/tables.yaml', import.meta.url));

/** All that the servers stand on: what is read, watched, kept and reported. */
export interface Foundation {
  readonly settings: Settings;
  readonly lines: StdoutLines;
  readonly log: Logger;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly own: OwnEndpoints;
  readonly upstream: UpstreamHttp;
  readonly metrics: Metrics;
  readonly tables: TablesSource;
  readonly stores: Stores;
  readonly life: Life;
  readonly memory: ProcessMemory;
  readonly audit: AuditLog;
  readonly telemetry: Telemetry;
  /** Lets go of all of it, in the opposite order. */
  close(): Promise<void>;
}

/** Opens it. Stores may still be away. Throws SettingsError on a bad setting, and then holds nothing. */
export async function openFoundation(settings: Settings, tracing: Tracing | null): Promise<Foundation> {
  const cleanups = new AsyncDisposableStack();
  try {
    const lines = cleanups.adopt(new StdoutLines(), (opened) => opened.close());
    // A stop that is cut short still says why.
    process.once('exit', () => lines.flush());
    const log = createLogger(settings.logLevel, lines);
    let hasStarted = false;
    // What could not be started says why, and nothing else.
    cleanups.defer(() => (hasStarted ? log.info('stopped') : undefined));
    cleanups.defer(async () => tracing?.close());
    const clock = createSystemClock();
    tracing?.listen(tracingTrouble(log, clock));
    const sealer = createSealer(sealingKeys(settings));
    const { outboundPolicy: mode, outboundAllowed, egress } = settings;
    const policy = outboundPolicy(mode, outboundAllowed, [], egress);
    const ours = [...storeEndpoints(settings), ...proxyEndpoints(egress), ...settings.kubernetesApi];
    const own = new OwnEndpoints(ours, lookupBySystem);
    reportIgnored(settings, log);
    reportProxies(egress, log);
    reportVouched(settings, log);
    const metrics = new Metrics();
    const audit = cleanups.adopt(createAuditLog(log, clock.monotonicMs), (opened) => opened.reportLeftOut());
    const tables = cleanups.adopt(await openTables(settings, clock, metrics, log), (opened) =>
      opened.close(),
    );
    const stores = cleanups.adopt(
      await storesOf(settings, { sealer, clock, log, lines, own }, metrics),
      (opened) => opened.close(),
    );
    const upstream = cleanups.adopt(
      createUpstream(settings.upstreamClient, own.guard(policy), settings.userSockets),
      (opened) => opened.close(),
    );
    cleanups.defer(() => own.stop());
    await own.start();
    const writeAccess = log.isLevelEnabled('info') ? (line: string) => lines.write(line) : null;
    const telemetry = new Telemetry(metrics, writeAccess, audit, tracing, settings.tracing);
    const memory = new ProcessMemory(settings.maxMemoryBytes, clock);
    const bodies = new BodyBudget(settings.heapBytes * bodiesHeapShare, randomInt(2 ** 31), (bytes) =>
      life.lacksMemory(bytes),
    );
    const sent = new SentAnswers(settings.heapBytes * sentHeapShare, queueReader);
    const unread = new UnreadAnswers(settings.heapBytes * unreadHeapShare, sent);
    const life = new Life(bodies, unread, settings.maxConnections, memory);
    const opened = {
      settings,
      lines,
      log,
      clock,
      sealer,
      own,
      upstream,
      metrics,
      tables,
      stores,
      life,
      memory,
      audit,
    };
    hasStarted = true;
    return { ...opened, telemetry, close: () => cleanups.disposeAsync() };
  } catch (error) {
    await cleanups.disposeAsync();
    throw error;
  }
}

/** Names of so many variables are a line that can be read. */
const mostIgnored = 20;

/** Says once what was set and does not count: by its name alone, since a secret may be misspelt too. */
function reportIgnored({ ignored, idle }: Settings, log: Logger): void {
  if (idle.length > 0) {
    const named = idle.map(({ name, only }) => `${name} (only ${only})`);
    log.warn({ ignored: named }, 'settings without effect are ignored');
  }
  if (ignored.length === 0) return;
  const named = ignored.map(({ name, nearest }) => (nearest === null ? name : `${name} (${nearest}?)`));
  const leftOut = named.length > mostIgnored ? { left_out: named.length - mostIgnored } : {};
  log.warn(
    { ignored: named.slice(0, mostIgnored), ...leftOut },
    'variables that are no settings are ignored',
  );
}

/** Says once by which way providers are reached, and what that forbids. */
function reportProxies(egress: Egress, log: Logger): void {
  const proxies = proxyEndpoints(egress);
  if (proxies.length === 0) return;
  log.info({ proxies, region: egress.residency }, 'providers are reached through a proxy');
  if (mayPassProxies(egress, 'india')) return;
  log.warn('requests that must stay in India do not pass the proxy: see GW_EGRESS_PROXY_REGION and NO_PROXY');
}

/** Says once that another address of a vendor in India is taken to be there too, by the word of whoever set it. */
function reportVouched({ vendorBaseUrls }: Settings, log: Logger): void {
  for (const provider of vendorNames) {
    const given = vendorBaseUrls[provider];
    if (given === undefined || providerTraits[provider].residency !== 'india') continue;
    log.warn(
      { provider },
      'requests that must stay in India go to the address that was set for this provider',
    );
  }
}

async function storesOf(
  settings: Settings,
  { sealer, clock, log, lines, own }: Pick<Foundation, 'sealer' | 'clock' | 'log' | 'lines' | 'own'>,
  metrics: Metrics,
): Promise<Stores> {
  const { databaseUrl } = settings;
  const onKept = (waitedMs: number): void => metrics.attempts.rowKept(waitedMs);
  if (databaseUrl === null) return openSidecarStores(settings, sealer, lines, onKept);
  const onStore = (endpoint: NamedEndpoint): void => own.addName(endpoint);
  const io = { settings, databaseUrl, sealer, clock, log, lines, metrics: metrics.stores };
  return openStores({ ...io, onKept, onStore });
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
    onRecovered: () => log.info('the tables can be read again; they are those in use'),
    onProblem: (problem) => log.error({ problem }, 'new tables are not usable; the last good ones stay'),
    onBug: (err) => log.error({ err }, 'a bug while following the tables; they stay in use'),
  };
  const { tablesConfigMap, tablesFile } = settings;
  const tables =
    tablesConfigMap === null
      ? await watchTablesFile(tablesFile ?? defaultTables, listeners)
      : await watchTablesConfigMap({
          ...{ ...listeners, ...tablesConfigMap, wallMs: clock.wallMs },
          onWaiting: (problem) => log.warn({ problem }, 'waiting for the tables'),
        });
  metrics.useTables(tables.current());
  return tables;
}
