import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { RoutingTables } from '../core/tables.ts';
import { AttemptMetrics } from './attempt-metrics.ts';
import { ChatMetrics } from './chat-metrics.ts';
import { HttpMetrics } from './http-metrics.ts';
import { ModelLabels } from './model-label.ts';
import { Families } from './series.ts';
import { StoreMetrics } from './store-metrics.ts';

type Labels = Readonly<Record<string, string>>;
/** One value, or one per label set. */
export type Reading = number | readonly (readonly [labels: Labels, value: number])[];

/**
 * All metric families of the gateway. Add one in the file of its concern: chat-metrics.ts (the story),
 * attempt-metrics.ts (upstream), http-metrics.ts (the edge), store-metrics.ts (cache and keys), or
 * watch-gauges.ts (numbers that others own). Label values come from closed lists only.
 */
export class Metrics {
  /** Exemplars need the OpenMetrics form; Prometheus reads it by its content type. */
  readonly registry = new Registry();
  readonly chat: ChatMetrics;
  readonly attempts: AttemptMetrics;
  readonly http: HttpMetrics;
  readonly stores: StoreMetrics;
  readonly #models = new ModelLabels();

  constructor() {
    this.registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
    const families = new Families(this.registry);
    this.chat = new ChatMetrics(families, this.#models);
    this.attempts = new AttemptMetrics(families, this.#models);
    this.http = new HttpMetrics(families);
    this.stores = new StoreMetrics(families);
    collectDefaultMetrics({ register: this.registry });
    this.observe(
      'counter',
      'gw_metrics_dropped_labels_total',
      'Label sets that are counted together as _other because their family was full.',
      () => families.dropped,
    );
  }

  /** To be called for the first tables and after each reload. */
  useTables(tables: RoutingTables): void {
    this.chat.useTables(tables);
    this.attempts.useTables(tables);
  }

  /** A number that another part owns, read at each scrape. */
  observe(
    kind: 'gauge' | 'counter',
    name: string,
    help: string,
    read: () => Reading,
    labelNames: readonly string[] = [],
  ): void {
    const options = { name, help, labelNames: [...labelNames], registers: [this.registry] };
    if (kind === 'gauge') {
      new Gauge({
        ...options,
        collect() {
          this.reset();
          for (const [labels, value] of readings(read)) this.set(labels, value);
        },
      });
      return;
    }
    new Counter({
      ...options,
      collect() {
        this.reset();
        for (const [labels, value] of readings(read)) this.inc(labels, value);
      },
    });
  }
}

function readings(read: () => Reading): readonly (readonly [labels: Labels, value: number])[] {
  const reading = read();
  return typeof reading === 'number' ? [[{}, reading]] : reading;
}
