import type { ProcessMemory } from '../adapters/system/process-memory.ts';
import type { TablesSource } from '../adapters/tables/last-good-tables.ts';
import type { UpstreamHttp } from '../adapters/upstream/upstream-http-port.ts';
import type { AnswerBudgets } from '../chat/answer-budget.ts';
import type { CandidateBreakers } from '../chat/candidate-breakers.ts';
import type { DueList } from '../chat/due-list.ts';
import type { BreakerState } from '../core/breaker-state.ts';
import { breakerStates } from '../core/breaker-state.ts';
import { providerNames, vendorNames } from '../core/provider-name.ts';
import type { BodyBudget } from '../http/body/body-budget.ts';
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
  readonly breakers: CandidateBreakers;
  readonly dues: Pick<DueList, 'length'>;
  readonly upstream: Pick<UpstreamHttp, 'connections'>;
  readonly version: string;
}

/** Numbers that other parts own, read when they are scraped. */
export function watchGauges(metrics: Metrics, parts: WatchedParts): void {
  const { life, dues, version } = parts;
  const build = [[{ version, node: process.versions.node }, 1]] as const;
  metrics.observe('gw_build_info', () => build);
  metrics.observe('gw_inflight_requests', () => life.activeCount);
  metrics.observe('gw_inflight_attempts', () => dues.length);
  metrics.observe('gw_inflight_streams', () => metrics.chat.openStreams);
  metrics.observe('gw_stream_buffered_bytes', () => life.bufferedBytes);
  metrics.observe('gw_draining', () => Number(life.phase !== 'serving'));
  watchTables(metrics, parts.tables);
  watchProviders(metrics, parts.breakers);
  watchConnections(metrics, parts.upstream);
  watchRequestLog(metrics, parts);
  watchStores(metrics, parts.stores, parts.settings.sealingKeys);
}

function watchTables(metrics: Metrics, tables: TablesSource): void {
  metrics.observe('gw_config_generation', () => tables.status().generation);
  metrics.observe('gw_config_info', () => [[{ hash: tables.status().hash }, 1]]);
  metrics.observe('gw_config_last_reload_successful', () => Number(tables.status().lastReloadOk));
  metrics.observe('gw_config_last_reload_success_timestamp_seconds', () => tables.status().loadedAtMs / 1000);
  metrics.observe('gw_config_reloads_total', () =>
    Object.entries(tables.status().loads).map(([result, count]) => [{ result }, count] as const),
  );
  metrics.observe(
    'gw_legacy_sunset_timestamp_seconds',
    () => (tables.current().legacy?.sunsetMs ?? 0) / 1000,
  );
}

const healthBy: Readonly<Record<BreakerState, number>> = { closed: 1, half_open: 0.5, open: 0 };

function watchProviders(metrics: Metrics, breakers: CandidateBreakers): void {
  metrics.observe('gw_provider_health', () =>
    vendorNames.map((provider) => [{ provider }, healthBy[breakers.stateOf(provider)]] as const),
  );
  metrics.observe('gw_provider_circuit_transitions_total', () =>
    vendorNames.flatMap((provider) =>
      breakerStates.map((to) => [{ provider, to }, breakers.transitions(provider, to)] as const),
    ),
  );
  metrics.observe('gw_provider_retry_after_seconds', () =>
    [...metrics.attempts.retryAfterSeconds].map(([provider, value]) => [{ provider }, value] as const),
  );
}

function watchConnections(metrics: Metrics, upstream: Pick<UpstreamHttp, 'connections'>): void {
  const none = { active: 0, idle: 0, waiting: 0 };
  metrics.observe('gw_upstream_connections', () => {
    const now = upstream.connections();
    return providerNames.flatMap((provider) =>
      Object.entries(now.get(provider) ?? none).map(
        ([state, count]) => [{ provider, state }, count] as const,
      ),
    );
  });
}

const logRowCounts = ['accepted', 'written', 'spooled', 'dropped', 'replayed', 'bad', 'printed'] as const;

function watchRequestLog(metrics: Metrics, { stores, settings }: WatchedParts): void {
  const rows = () => stores.requestLog.stats();
  for (const name of logRowCounts) {
    metrics.observe(`gw_log_rows_${name}_total` as const, () => rows()[name]);
  }
  metrics.observe('gw_log_queue_depth', () => rows().queueDepth);
  metrics.observe('gw_log_oldest_row_age_seconds', () => rows().oldestRowAgeMs / 1000);
  metrics.observe('gw_log_store_away', () => Number(rows().away));
  metrics.observe('gw_log_spool_bytes', () => rows().spoolBytes);
  metrics.observe('gw_log_spool_limit_bytes', () => settings.spoolBytes);
}

/** What load shedding looks at, as a share of its limits; 0 where no limit is set. */
export function watchPressure(
  metrics: Metrics,
  usage: () => { readonly eventLoopDelay: number; readonly heapUsed: number },
  memory: Pick<ProcessMemory, 'share'>,
  limits: { readonly maxEventLoopDelayMs: number; readonly maxHeapBytes: number },
  bodies: Pick<BodyBudget, 'fullness'>,
  answers: Pick<AnswerBudgets, 'large' | 'small'>,
): void {
  const ratio = (value: number, limit: number) => (limit === 0 ? 0 : value / limit);
  metrics.observe('gw_pressure_ratio', () => {
    const { eventLoopDelay, heapUsed } = usage();
    return [
      [{ resource: 'event_loop_delay' }, ratio(eventLoopDelay, limits.maxEventLoopDelayMs)],
      [{ resource: 'heap' }, ratio(heapUsed, limits.maxHeapBytes)],
      [{ resource: 'memory' }, memory.share],
      [{ resource: 'body_bytes' }, bodies.fullness],
      [{ resource: 'answer_bytes' }, Math.max(answers.large.fullness, answers.small.fullness)],
    ];
  });
}
