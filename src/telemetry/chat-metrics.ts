import type { StreamEnding } from '../chat/telemetry-port.ts';
import { streamEndings } from '../chat/telemetry-port.ts';
import type { Candidate } from '../core/candidate.ts';
import type { ErrorType } from '../core/errors.ts';
import { errorRows } from '../core/errors.ts';
import type { AttemptFailure } from '../core/outcome.ts';
import { failureKinds } from '../core/outcome.ts';
import type { SkippedCandidate } from '../core/plan.ts';
import { skipReasons } from '../core/plan.ts';
import { providerNames } from '../core/provider-name.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import type { RequestStatus, SettledRequest } from '../core/settled-request.ts';
import { cacheResults, outcomeOf, shownProvider } from '../core/settled-request.ts';
import { modeOf, modes, tierNames } from '../core/tables/mode.ts';
import type { RoutingTables } from '../core/tables/tables.ts';
import { LabelTree } from './label-tree.ts';
import { modelLabel } from './model-label.ts';
import type { CounterSeries, Families, HistogramSeries } from './series.ts';

/** How requests that were sent to a candidate may end; their series exist, at 0, from the start. */
const outcomes: readonly (RequestStatus | ErrorType)[] = [
  'success',
  'client_closed',
  'incomplete',
  ...errorRows.filter(([, , end]) => end === 'candidate').map(([type]) => type),
];

/** What one mode spent on one model. */
interface Spending {
  readonly cost: CounterSeries;
  readonly input: CounterSeries;
  readonly output: CounterSeries;
  readonly cachedInput: CounterSeries;
  readonly reasoning: CounterSeries;
}

/** What requests of one mode that one model answered are counted in; what is null is made when it is needed. */
interface ModelSeries {
  readonly duration: HistogramSeries;
  /** Of the ways in which nearly all requests end: served, without the cache, or from it. */
  answers: CounterSeries | null;
  streams: CounterSeries | null;
  hits: CounterSeries | null;
  spending: Spending | null;
}

/** Requests, streams, cache, fallbacks, tokens and money: the story as a whole. */
export class ChatMetrics {
  readonly #requests;
  readonly #duration;
  readonly #fallbacks;
  readonly #skips;
  readonly #streams;
  readonly #backpressure;
  readonly #cache;
  readonly #tokens;
  readonly #cost;
  readonly #saved;
  /** By mode, provider and model: looked up once per request. */
  readonly #series = new LabelTree<ModelSeries>();
  /** Streams between their first token and their last byte. */
  openStreams = 0;

  constructor(families: Families) {
    this.#requests = families.counter('gw_requests_total');
    this.#duration = families.histogram('gw_request_duration_seconds');
    this.#fallbacks = families.counter('gw_fallbacks_total');
    this.#skips = families.counter('gw_candidates_skipped_total');
    this.#streams = families.counter('gw_streams_total');
    this.#backpressure = families.counter('gw_stream_client_backpressure_seconds_total');
    this.#cache = families.counter('gw_cache_requests_total');
    this.#tokens = families.counter('gw_tokens_total');
    this.#cost = families.counter('gw_cost_microusd_total');
    this.#saved = families.counter('gw_cache_saved_microusd_total');
    for (const provider of providerNames) for (const reason of skipReasons) this.#skips.of(provider, reason);
    for (const end of streamEndings) this.#streams.of(end);
    for (const result of cacheResults) this.#cache.of(result);
    for (const mode of [...modes, 'override']) this.#duration.of(mode);
    this.#backpressure.of();
  }

  /** Makes what the tables can bring about visible as zeros: a counter born at 5 shows no increase. */
  useTables(tables: RoutingTables): void {
    for (const name of tierNames) {
      const [mode, tier] = [modeOf(name), tables.tier(name)];
      for (const [index, from] of tier.entries()) {
        this.#spendingOf(mode, from.provider, from.model);
        this.#saved.of(mode, from.provider, from.model);
        for (const outcome of outcomes)
          this.#requests.of(mode, from.provider, from.model, outcome, 'false', 'bypass');
        for (const to of tier.slice(index + 1)) {
          for (const reason of failureKinds) this.#fallbacks.of(mode, from.provider, to.provider, reason);
        }
      }
    }
  }

  planned(_call: ChatCall, skipped: readonly SkippedCandidate[]): void {
    for (const { provider, reason } of skipped) this.#skips.of(provider, reason).add();
  }

  fellBack(call: ChatCall, from: Candidate, to: Candidate, failure: AttemptFailure): void {
    this.#fallbacks.of(call.mode, from.provider, to.provider, failure.kind).add();
  }

  streamOpened(): void {
    this.openStreams += 1;
  }

  streamClosed(end: StreamEnding, stalledMs: number): void {
    this.openStreams -= 1;
    this.#streams.of(end).add();
    if (stalledMs > 0) this.#backpressure.of().add(stalledMs / 1000);
  }

  settled(call: ChatCall, settled: SettledRequest): void {
    const { mode, target, cache, cachedFrom, usage, savedMicroUsd } = settled;
    const served = cachedFrom === null ? target : null;
    const provider = shownProvider(settled);
    const model = served === null ? provider : modelLabel(call.tables, served.provider, served.model);
    const series = this.#seriesOf(mode, provider, model);
    this.#endingOf(series, settled, provider, model).add();
    this.#cache.of(cache).add();
    series.duration.observe(settled.latencyMs / 1000, call.trace);
    if (cachedFrom !== null && savedMicroUsd > 0n) {
      const storedModel = modelLabel(call.tables, cachedFrom.provider, cachedFrom.model);
      this.#saved.of(mode, cachedFrom.provider, storedModel).add(Number(savedMicroUsd));
    }
    if (served === null || usage.basis === 'none') return;
    series.spending ??= this.#spendingOf(mode, provider, model);
    const { spending } = series;
    spending.cost.add(Number(settled.costMicroUsd));
    spending.input.add(usage.inputTokens);
    spending.output.add(usage.outputTokens);
    spending.cachedInput.add(usage.cachedInputTokens);
    spending.reasoning.add(usage.reasoningTokens);
  }

  #seriesOf(mode: string, provider: string, model: string): ModelSeries {
    const labels = [mode, provider, model];
    const known = this.#series.get(labels);
    if (known !== undefined) return known;
    const series = {
      duration: this.#duration.of(mode),
      answers: null,
      streams: null,
      hits: null,
      spending: null,
    };
    this.#series.set(labels, series);
    return series;
  }

  #endingOf(series: ModelSeries, settled: SettledRequest, provider: string, model: string): CounterSeries {
    const { mode, stream, cache } = settled;
    const made = (): CounterSeries =>
      this.#requests.of(mode, provider, model, outcomeOf(settled), stream ? 'true' : 'false', cache);
    if (settled.end.status !== 'success') return made();
    if (cache === 'hit' && !stream) {
      series.hits ??= made();
      return series.hits;
    }
    if (cache !== 'bypass') return made();
    if (stream) {
      series.streams ??= made();
      return series.streams;
    }
    series.answers ??= made();
    return series.answers;
  }

  #spendingOf(mode: string, provider: string, model: string): Spending {
    const tokens = (type: string) => this.#tokens.of(mode, provider, model, type);
    return {
      cost: this.#cost.of(mode, provider, model),
      input: tokens('input'),
      output: tokens('output'),
      cachedInput: tokens('cached_input'),
      reasoning: tokens('reasoning'),
    };
  }
}
