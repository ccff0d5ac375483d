import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { AttemptRecord, CacheResult, ChatTelemetry } from '../chat/telemetry-port.ts';
import type { Candidate } from '../core/candidate.ts';
import type { ChatCall } from '../core/chat-call.ts';
import type { LogRow } from '../core/log-row.ts';
import { tierNames } from '../core/mode.ts';
import type { AttemptFailure } from '../core/outcome.ts';
import type { SkippedCandidate } from '../core/plan.ts';
import type { RoutingTables } from '../core/tables.ts';
import { durationBuckets } from './buckets.ts';

/** A label value for models no table knows: an override may name anything, a metric may not. */
const otherModel = '_other';

function modelLabel(tables: RoutingTables, candidate: Pick<Candidate, 'provider' | 'model'>): string {
  const { provider, model } = candidate;
  const inTier = tierNames.some((name) =>
    tables.tier(name).some((known) => known.provider === provider && known.model === model),
  );
  const priced =
    inTier || tables.document.prices.some((row) => row.provider === provider && row.model === model);
  return priced ? model : otherModel;
}

const outcomeOf = (row: LogRow): string =>
  row.status === 'error' ? (row.error?.split(':', 1)[0] ?? 'error') : row.status;

/** All metric families of the gateway. Add a metric here only. */
export class Metrics implements ChatTelemetry {
  readonly registry = new Registry();
  readonly #registers = [this.registry];
  /** Model labels per table generation, so that the look-up is paid once. */
  #labels: { readonly tables: RoutingTables; readonly names: Map<string, string> } | null = null;

  readonly #requests = new Counter({
    name: 'gw_requests_total',
    help: 'Chat requests by how they ended.',
    labelNames: ['mode', 'provider', 'model', 'outcome', 'stream', 'cache'],
    registers: this.#registers,
  });
  readonly #duration = new Histogram({
    name: 'gw_request_duration_seconds',
    help: 'Chat requests from entry to settlement.',
    labelNames: ['mode', 'outcome'],
    buckets: [...durationBuckets],
    registers: this.#registers,
  });
  readonly #attempts = new Histogram({
    name: 'gen_ai_client_operation_duration_seconds',
    help: 'Upstream attempts, one observation each.',
    labelNames: ['gen_ai_operation_name', 'gen_ai_provider_name', 'gen_ai_request_model', 'error_type'],
    buckets: [...durationBuckets],
    registers: this.#registers,
  });
  readonly #firstToken = new Histogram({
    name: 'gen_ai_client_operation_time_to_first_chunk_seconds',
    help: 'Time to the first token of streamed attempts.',
    labelNames: ['gen_ai_provider_name', 'gen_ai_request_model'],
    buckets: [...durationBuckets],
    registers: this.#registers,
  });
  readonly #fallbacks = new Counter({
    name: 'gw_fallbacks_total',
    help: 'Moves to the next candidate.',
    labelNames: ['mode', 'from_provider', 'to_provider', 'reason'],
    registers: this.#registers,
  });
  readonly #skips = new Counter({
    name: 'gw_candidates_skipped_total',
    help: 'Candidates passed over or moved back, by reason.',
    labelNames: ['provider', 'reason'],
    registers: this.#registers,
  });
  readonly #streams = new Counter({
    name: 'gw_streams_total',
    help: 'Streams by how they ended.',
    labelNames: ['end'],
    registers: this.#registers,
  });
  readonly #openStreams = new Gauge({
    name: 'gw_inflight_streams',
    help: 'Streams open now.',
    registers: this.#registers,
  });
  readonly #cache = new Counter({
    name: 'gw_cache_requests_total',
    help: 'Cache look-ups; bypass: the client did not opt in.',
    labelNames: ['result'],
    registers: this.#registers,
  });
  readonly #tokens = new Counter({
    name: 'gw_tokens_total',
    help: 'Tokens by class; cached_input and reasoning are parts of input and output.',
    labelNames: ['mode', 'provider', 'model', 'type'],
    registers: this.#registers,
  });
  readonly #cost = new Counter({
    name: 'gw_cost_microusd_total',
    help: 'Whole micro-dollars; equals the sum of cost_usd in the request logs.',
    labelNames: ['mode', 'provider', 'model'],
    registers: this.#registers,
  });
  readonly #saved = new Counter({
    name: 'gw_cache_saved_microusd_total',
    help: 'What cache hits would have cost.',
    labelNames: ['mode'],
    registers: this.#registers,
  });

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }

  /** A gauge or counter read at scrape time from whoever owns the number. */
  observe(kind: 'gauge' | 'counter', name: string, help: string, read: () => number): void {
    if (kind === 'gauge') {
      new Gauge({
        name,
        help,
        registers: this.#registers,
        collect() {
          this.set(read());
        },
      });
      return;
    }
    new Counter({
      name,
      help,
      registers: this.#registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }

  candidatesSkipped(_call: ChatCall, skipped: readonly SkippedCandidate[]): void {
    for (const { provider, reason } of skipped) this.#skips.inc({ provider, reason });
  }

  attemptEnded(call: ChatCall, record: AttemptRecord): void {
    const { provider } = record.candidate;
    const model = this.#model(call.tables, record.candidate);
    const errorType = record.end === 'served' ? '' : (record.failure?.kind ?? record.end);
    this.#attempts.observe(
      {
        gen_ai_operation_name: 'chat',
        gen_ai_provider_name: provider,
        gen_ai_request_model: model,
        error_type: errorType,
      },
      record.durationMs / 1000,
    );
    if (record.firstTokenMs === null) return;
    const labels = { gen_ai_provider_name: provider, gen_ai_request_model: model };
    this.#firstToken.observe(labels, record.firstTokenMs / 1000);
  }

  fellBack(call: ChatCall, from: Candidate, to: Candidate, failure: AttemptFailure): void {
    this.#fallbacks.inc({
      mode: call.mode,
      from_provider: from.provider,
      to_provider: to.provider,
      reason: failure.kind,
    });
  }

  streamOpened(): void {
    this.#openStreams.inc();
  }

  streamClosed(end: 'complete' | 'upstream_error' | 'client_abort' | 'drain_cut'): void {
    this.#openStreams.dec();
    this.#streams.inc({ end });
  }

  cacheAnswered(result: CacheResult): void {
    this.#cache.inc({ result });
  }

  settled(call: ChatCall, row: LogRow): void {
    const { mode, provider, usage } = row;
    const model =
      row.cacheHit || provider === 'none'
        ? provider
        : this.#model(call.tables, { provider: provider as Candidate['provider'], model: row.model });
    const outcome = outcomeOf(row);
    const cache = row.cacheHit ? 'hit' : call.options.cacheTtlSeconds === null ? 'bypass' : 'miss';
    this.#requests.inc({ mode, provider, model, outcome, stream: String(row.stream), cache });
    this.#duration.observe({ mode, outcome }, row.latencyMs / 1000);
    if (row.savedMicroUsd > 0n) this.#saved.inc({ mode }, Number(row.savedMicroUsd));
    if (row.cacheHit || !usage.reported) return;
    const labels = { mode, provider, model };
    this.#cost.inc(labels, Number(row.costMicroUsd));
    this.#tokens.inc({ ...labels, type: 'input' }, usage.inputTokens);
    this.#tokens.inc({ ...labels, type: 'output' }, usage.outputTokens);
    if (usage.cachedInputTokens > 0) {
      this.#tokens.inc({ ...labels, type: 'cached_input' }, usage.cachedInputTokens);
    }
    if (usage.reasoningTokens > 0) this.#tokens.inc({ ...labels, type: 'reasoning' }, usage.reasoningTokens);
  }

  #model(tables: RoutingTables, candidate: Pick<Candidate, 'provider' | 'model'>): string {
    if (this.#labels?.tables !== tables) this.#labels = { tables, names: new Map() };
    const name = `${candidate.provider} ${candidate.model}`;
    const known = this.#labels.names.get(name);
    if (known !== undefined) return known;
    const label = modelLabel(tables, candidate);
    // Only models of the tables are remembered: their number is bounded, the others' is not.
    if (label !== otherModel) this.#labels.names.set(name, label);
    return label;
  }
}
