import type { TablesSource } from '../adapters/last-good-tables.ts';
import type { UpstreamHttp } from '../adapters/upstream/upstream-http-port.ts';
import type { AnswerBudget } from '../chat/answer-budget.ts';
import type { CircuitState, CooldownBook } from '../chat/cooldown.ts';
import { circuitStates, isShared } from '../chat/cooldown.ts';
import { providerNames } from '../core/provider-name.ts';
import type { BodyBudget } from '../http/body-budget.ts';
import type { Life } from '../http/life.ts';
import type { Settings } from '../settings.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Stores } from './stores.ts';
import { watchStores } from './watch-stores.ts';

export interface WatchedParts {
  readonly settings: Settings;
  readonly tables: TablesSource;
  readonly stores: Stores;
  readonly life: Life;
  readonly cooldown: CooldownBook;
  readonly upstream: Pick<UpstreamHttp, 'connections'>;
  readonly version: string;
}

/** Numbers that other parts own, read when they are scraped. */
export function watchGauges(metrics: Metrics, parts: WatchedParts): void {
  const { life, version } = parts;
  const build = [[{ version, node: process.versions.node }, 1]] as const;
  metrics.observe('gauge', 'gw_build_info', 'What is running; always 1.', () => build, ['version', 'node']);
  metrics.observe('gauge', 'gw_inflight_requests', 'Chat requests under way.', () => life.activeCount);
  metrics.observe('gauge', 'gw_inflight_streams', 'Streams open now.', () => metrics.chat.openStreams);
  metrics.observe(
    'gauge',
    'gw_stream_buffered_bytes',
    'Bytes written to clients that they have not taken yet.',
    () => life.bufferedBytes,
  );
  metrics.observe('gauge', 'gw_draining', '1 after SIGTERM.', () => Number(life.draining));
  watchTables(metrics, parts.tables);
  watchProviders(metrics, parts.cooldown);
  watchConnections(metrics, parts.upstream);
  watchRequestLog(metrics, parts);
  watchStores(metrics, parts.stores, parts.settings.sealingKeys);
}

function watchTables(metrics: Metrics, tables: TablesSource): void {
  metrics.observe('gauge', 'gw_config_generation', 'Loads of the tables.', () => tables.status().generation);
  metrics.observe(
    'gauge',
    'gw_config_info',
    'The tables in use; always 1.',
    () => [[{ hash: tables.status().hash }, 1]],
    ['hash'],
  );
  metrics.observe('gauge', 'gw_config_last_reload_successful', '0 while a newer document is refused.', () =>
    Number(tables.status().lastReloadOk),
  );
  metrics.observe(
    'gauge',
    'gw_config_last_reload_success_timestamp_seconds',
    'When the tables in use were loaded.',
    () => tables.status().loadedAtMs / 1000,
  );
  metrics.observe(
    'counter',
    'gw_config_reloads_total',
    'Loads of the tables by result.',
    () => Object.entries(tables.status().loads).map(([result, count]) => [{ result }, count] as const),
    ['result'],
  );
  metrics.observe(
    'gauge',
    'gw_legacy_sunset_timestamp_seconds',
    'When the names from before the rename stop working; 0 where there are none.',
    () => (tables.current().legacy?.sunsetMs ?? 0) / 1000,
  );
}

const healthBy: Readonly<Record<CircuitState, number>> = { closed: 1, half_open: 0.5, open: 0 };

function watchProviders(metrics: Metrics, cooldown: CooldownBook): void {
  const vendors = providerNames.filter(isShared);
  metrics.observe(
    'gauge',
    'gw_provider_health',
    '0 while a whole provider is tried last because several users saw it fail, 0.5 while a probe is under way.',
    () => vendors.map((provider) => [{ provider }, healthBy[cooldown.circuitOf(provider)]] as const),
    ['provider'],
  );
  metrics.observe(
    'counter',
    'gw_provider_circuit_transitions_total',
    'How often attempts brought a provider into a state: open, half_open, closed.',
    () =>
      vendors.flatMap((provider) =>
        circuitStates.map((to) => [{ provider, to }, cooldown.transitions(provider, to)] as const),
      ),
    ['provider', 'to'],
  );
  metrics.observe(
    'gauge',
    'gw_provider_retry_after_seconds',
    'How long a provider last asked to wait.',
    () => [...metrics.attempts.retryAfterSeconds].map(([provider, value]) => [{ provider }, value] as const),
    ['provider'],
  );
}

function watchConnections(metrics: Metrics, upstream: Pick<UpstreamHttp, 'connections'>): void {
  const none = { active: 0, idle: 0, waiting: 0 };
  metrics.observe(
    'gauge',
    'gw_upstream_connections',
    'Sockets to providers: active with a call, idle, or waiting to be made.',
    () => {
      const now = upstream.connections();
      return providerNames.flatMap((provider) =>
        Object.entries(now.get(provider) ?? none).map(
          ([state, count]) => [{ provider, state }, count] as const,
        ),
      );
    },
    ['provider', 'state'],
  );
}

function watchRequestLog(metrics: Metrics, { stores, settings }: WatchedParts): void {
  const rows = () => stores.requestLog.stats();
  const count = (name: string, help: string, read: (stats: ReturnType<typeof rows>) => number) =>
    metrics.observe('counter', `gw_log_rows_${name}_total`, help, () => read(rows()));
  count(
    'accepted',
    'Log rows settled; accepted = written + spooled + dropped + queue.',
    (log) => log.accepted,
  );
  count(
    'written',
    'Log rows committed at once; of a sidecar without a database: on stdout.',
    (log) => log.written,
  );
  count('spooled', 'Log rows put into the spool.', (log) => log.spooled);
  count(
    'dropped',
    'Log rows that neither Postgres nor the spool took, printed; of a sidecar: not taken by stdout, gone.',
    (log) => log.dropped,
  );
  count('replayed', 'Log rows taken from the spool to Postgres.', (log) => log.replayed);
  count('bad', 'Spool lines that Postgres refuses.', (log) => log.bad);
  count('printed', 'Log rows printed because no store took them, or at the end.', (log) => log.printed);
  const gauge = (name: string, help: string, read: () => number) =>
    metrics.observe('gauge', name, help, read);
  gauge('gw_log_queue_depth', 'Log rows waiting.', () => rows().queueDepth);
  gauge(
    'gw_log_oldest_row_age_seconds',
    'Age of the oldest row waiting.',
    () => rows().oldestRowAgeMs / 1000,
  );
  gauge('gw_log_store_away', '1 while rows go straight to the spool.', () => Number(rows().away));
  gauge('gw_log_spool_bytes', 'Size of the spool.', () => rows().spoolBytes);
  gauge('gw_log_spool_limit_bytes', 'Size at which the spool is full.', () => settings.spoolBytes);
}

/** What load shedding looks at, as a share of its limits; 0 where no limit is set. */
export function watchPressure(
  metrics: Metrics,
  usage: () => { readonly eventLoopDelay: number; readonly heapUsed: number },
  limits: { readonly maxEventLoopDelayMs: number; readonly maxHeapBytes: number },
  bodies: Pick<BodyBudget, 'fullness'>,
  answers: Pick<AnswerBudget, 'fullness'>,
): void {
  const ratio = (value: number, limit: number) => (limit === 0 ? 0 : value / limit);
  metrics.observe(
    'gauge',
    'gw_pressure_ratio',
    'What load shedding watches over its limit; requests, or large answers of vendors, are refused from 1 on.',
    () => {
      const { eventLoopDelay, heapUsed } = usage();
      return [
        [{ resource: 'event_loop_delay' }, ratio(eventLoopDelay, limits.maxEventLoopDelayMs)],
        [{ resource: 'heap' }, ratio(heapUsed, limits.maxHeapBytes)],
        [{ resource: 'body_bytes' }, bodies.fullness],
        [{ resource: 'answer_bytes' }, answers.fullness],
      ];
    },
    ['resource'],
  );
}
