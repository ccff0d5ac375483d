import type { Usage } from '../core/answer/usage.ts';
import type { AttemptRecord } from '../core/attempt-record.ts';
import { otherName } from '../core/other-name.ts';
import type { ProviderName, UnpricedProviderName } from '../core/provider-name.ts';
import { isPriced, providerNames } from '../core/provider-name.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import { tierNames } from '../core/tables/mode.ts';
import type { RoutingTables } from '../core/tables/tables.ts';
import { modelLabel } from './model-label.ts';
import type { Families, HistogramSeries } from './series.ts';

/** Why an answer was not priced; the name of its provider where that has no prices. */
export const unpricedReasons = ['no_price', 'no_usage', 'partial_usage'] as const;
type UnpricedReason = (typeof unpricedReasons)[number] | UnpricedProviderName;

/** Too short a burst to tell a speed from. */
const shortestGenerationMs = 50;

/** How an attempt failed, in one word of a closed list; empty when it served. */
export function errorTypeOf({ end }: AttemptRecord): string {
  switch (end.kind) {
    case 'served':
      return '';
    case 'failed':
      return end.failure.kind;
    case 'cut':
      return 'interrupted';
    case 'cancelled':
      return 'aborted';
  }
}

/** What one model does, seen from here: looked up once per attempt. */
interface ModelSeries {
  readonly served: HistogramSeries;
  readonly inputTokens: HistogramSeries;
  readonly outputTokens: HistogramSeries;
  /** Those of streams are made with the first stream. */
  firstChunk: HistogramSeries | null;
  tokenRate: HistogramSeries | null;
}

/** Upstream attempts under the names of the OpenTelemetry GenAI conventions, and what we add to them. */
export class AttemptMetrics {
  readonly #durations;
  readonly #firstChunks;
  readonly #tokenUsage;
  readonly #tokenRates;
  readonly #unpriced;
  readonly #beforeUpstream;
  readonly #firstByteRelay;
  readonly #afterLastByte;
  /** By provider, then model: names that are at hand need no putting together of a key. */
  readonly #series = new Map<string, Map<string, ModelSeries>>();
  /** Seconds that a provider last asked us to wait. */
  readonly retryAfterSeconds = new Map<ProviderName, number>(providerNames.map((name) => [name, 0]));

  constructor(families: Families) {
    this.#durations = families.histogram('gen_ai_client_operation_duration_seconds');
    this.#firstChunks = families.histogram('gen_ai_client_operation_time_to_first_chunk_seconds');
    this.#tokenUsage = families.histogram('gen_ai_client_token_usage');
    this.#tokenRates = families.histogram('gw_output_tokens_per_second');
    this.#unpriced = families.counter('gw_unpriced_responses_total');
    const overhead = families.histogram('gw_overhead_seconds');
    this.#beforeUpstream = overhead.of('before_upstream');
    this.#firstByteRelay = overhead.of('first_byte_relay');
    this.#afterLastByte = overhead.of('after_last_byte');
  }

  /** Makes the models of the tiers visible before their first request. */
  useTables(tables: RoutingTables): void {
    for (const { provider, model } of tierNames.flatMap((name) => tables.tier(name))) {
      this.#seriesOf(provider, model);
      this.#firstChunks.of(provider, model);
      for (const reason of unpricedReasons) this.#unpriced.of(provider, model, reason);
    }
    // Overrides may name any model: the first answer without a price is to show as an increase.
    for (const provider of providerNames) {
      this.#unpriced.of(provider, otherName, isPriced(provider) ? 'no_price' : provider);
    }
  }

  attemptEnded(call: ChatCall, record: AttemptRecord): void {
    const { candidate, firstTokenMs, usage, end } = record;
    const { provider } = candidate;
    const model = modelLabel(call.tables, provider, candidate.model);
    const series = this.#seriesOf(provider, model);
    const errorType = errorTypeOf(record);
    const duration =
      errorType === '' ? series.served : this.#durations.of('chat', provider, model, errorType);
    duration.observe(record.durationMs / 1000, call.trace);
    // Who waits for an equal request's answer waits for a vendor, and not for us.
    if (record.number === 1 && call.options.cacheTtlSeconds === null) {
      this.#beforeUpstream.observe((record.startedAtMs - call.enteredAtMs) / 1000, call.trace);
    }
    if (end.kind === 'failed' && end.failure.retryAfterMs !== null) {
      this.retryAfterSeconds.set(provider, end.failure.retryAfterMs / 1000);
    }
    if (firstTokenMs !== null) {
      series.firstChunk ??= this.#firstChunks.of(provider, model);
      series.firstChunk.observe(firstTokenMs / 1000, call.trace);
    }
    if (usage === null) return;
    if (end.kind === 'served' && usage.basis === 'complete') {
      series.inputTokens.observe(usage.inputTokens);
      series.outputTokens.observe(usage.outputTokens);
      const rate = tokenRate(record, usage);
      if (rate !== null) {
        series.tokenRate ??= this.#tokenRates.of(provider, model);
        series.tokenRate.observe(rate);
      }
    }
    const reason = unpricedReason(record, usage);
    if (reason !== null) this.#unpriced.of(provider, model, reason).add();
  }

  streamOpened(call: ChatCall, relayMs: number): void {
    this.#firstByteRelay.observe(relayMs / 1000, call.trace);
  }

  rowKept(waitedMs: number): void {
    this.#afterLastByte.observe(waitedMs / 1000);
  }

  #seriesOf(provider: string, model: string): ModelSeries {
    const models = this.#series.get(provider) ?? new Map<string, ModelSeries>();
    const known = models.get(model);
    if (known !== undefined) return known;
    const series: ModelSeries = {
      served: this.#durations.of('chat', provider, model, ''),
      inputTokens: this.#tokenUsage.of('chat', provider, model, 'input'),
      outputTokens: this.#tokenUsage.of('chat', provider, model, 'output'),
      firstChunk: null,
      tokenRate: null,
    };
    this.#series.set(provider, models.set(model, series));
    return series;
  }
}

/** Output tokens per second of a stream; null where there is too little to tell. */
function tokenRate({ firstTokenMs, durationMs }: AttemptRecord, usage: Usage): number | null {
  if (firstTokenMs === null) return null;
  const generationMs = durationMs - firstTokenMs;
  return generationMs < shortestGenerationMs ? null : usage.outputTokens / (generationMs / 1000);
}

function unpricedReason({ candidate }: AttemptRecord, usage: Usage): UnpricedReason | null {
  if (!isPriced(candidate.provider)) return candidate.provider;
  if (usage.basis === 'none') return 'no_usage';
  if (candidate.price === null) return 'no_price';
  return usage.basis === 'partial' ? 'partial_usage' : null;
}
