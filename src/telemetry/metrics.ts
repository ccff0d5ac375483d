import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { RoutingTables } from '../core/tables/tables.ts';
import { AttemptMetrics } from './attempt-metrics.ts';
import { ChatMetrics } from './chat-metrics.ts';
import type { FamilyNameOf, LabelsOf } from './families/families.ts';
import { metricFamilies } from './families/families.ts';
import { HttpMetrics } from './http-metrics.ts';
import { Families } from './series.ts';
import { StoreMetrics } from './store-metrics.ts';

type Labelled<Label extends string> = readonly (readonly [
  labels: Readonly<Record<Label, string>>,
  value: number,
])[];
/** One value, or one per label set. */
export type Reading<Label extends string = never> = number | Labelled<Label>;

/**
 * The metrics of one process. What there is stands in families.ts; it is counted in the file of its concern:
 * chat-metrics.ts (the story), attempt-metrics.ts (upstream), http-metrics.ts (the edge), store-metrics.ts (cache and
 * keys), or wiring/watch-gauges.ts (numbers that others own).
 */
export class Metrics {
  /** Exemplars need the OpenMetrics form; Prometheus reads it by its content type. */
  readonly registry = new Registry();
  readonly chat: ChatMetrics;
  readonly attempts: AttemptMetrics;
  readonly http: HttpMetrics;
  readonly stores: StoreMetrics;

  constructor() {
    this.registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
    const families = new Families(this.registry);
    this.chat = new ChatMetrics(families);
    this.attempts = new AttemptMetrics(families);
    this.http = new HttpMetrics(families);
    this.stores = new StoreMetrics(families);
    collectDefaultMetrics({ register: this.registry });
    this.observe('gw_metrics_dropped_labels_total', () => families.dropped);
  }

  /** To be called for the first tables and after each reload. */
  useTables(tables: RoutingTables): void {
    this.chat.useTables(tables);
    this.attempts.useTables(tables);
  }

  /** A number that another part owns, read at each scrape. */
  observe<Name extends FamilyNameOf<'read gauge' | 'read counter'>>(
    name: Name,
    read: () => Reading<LabelsOf<Name>[number]>,
  ): void {
    const { kind, help, labels } = metricFamilies[name];
    const options = { name, help, labelNames: [...labels] as string[], registers: [this.registry] };
    if (kind === 'read gauge') {
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

function readings(read: () => Reading<string>): Labelled<string> {
  const reading = read();
  return typeof reading === 'number' ? [[{}, reading]] : reading;
}
