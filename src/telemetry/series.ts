import type { Registry } from 'prom-client';
import { otherName } from '../core/other-name.ts';
import type { FamilyNameOf, LabelsOf } from './families/families.ts';
import { metricFamilies } from './families/families.ts';
import type { CounterFamily, HistogramFamily } from './families/family.ts';
import { LabelTree } from './label-tree.ts';

/**
 * Counters and histograms whose series are plain objects: a caller that holds one pays an addition, no label
 * hashing. prom-client renders them with its own default metrics, in OpenMetrics form.
 */

/** Where a sampled observation can be looked at. */
export interface Exemplar {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
}

interface Sample {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly sharedLabels?: Readonly<Record<string, string>>;
  readonly value: number;
  readonly exemplar?: { readonly labelSet: object; readonly value: number; readonly timestamp: number };
}

/** A value for each label, in the order of the names. */
type LabelValues<Labels extends readonly string[]> = { readonly [Index in keyof Labels]: string };
type Names = readonly string[];

/** All families of one process. */
export class Families {
  readonly registry: Registry;
  /** Label sets without a series of their own because their family was full; at least so many, of very many. */
  dropped = 0;

  constructor(registry: Registry) {
    this.registry = registry;
  }

  counter<Name extends FamilyNameOf<'counter'>>(name: Name): Counter<LabelsOf<Name>> {
    return new Counter(this, name, metricFamilies[name] as CounterFamily<LabelsOf<Name>>);
  }

  histogram<Name extends FamilyNameOf<'histogram'>>(name: Name): Histogram<LabelsOf<Name>> {
    return new Histogram(this, name, metricFamilies[name] as HistogramFamily<LabelsOf<Name>>);
  }
}

abstract class Family<Series, Labels extends Names> {
  /** prom-client takes `_total` off counters in the OpenMetrics form. */
  name: string;
  readonly help: string;
  abstract readonly type: 'counter' | 'histogram';
  readonly #families: Families;
  readonly #labelNames: readonly string[];
  readonly #maxSeries: number;
  readonly #series: { readonly labels: Record<string, string>; readonly series: Series }[] = [];
  readonly #byLabels = new LabelTree<Series>();
  /** The label sets that share a series; remembered, as far as there is room, to be counted once. */
  readonly #dropped = new Set<string>();

  constructor(
    families: Families,
    name: string,
    { help, labels, maxSeries }: Pick<CounterFamily<Labels>, 'help' | 'labels' | 'maxSeries'>,
  ) {
    this.name = name;
    this.help = help;
    this.#families = families;
    this.#labelNames = labels;
    this.#maxSeries = maxSeries;
    families.registry.registerMetric(this as unknown as Parameters<Registry['registerMetric']>[0]);
  }

  /** The series of these label values; made at zero when it is new. */
  of(...values: LabelValues<Labels>): Series {
    const known = this.#byLabels.get(values);
    if (known !== undefined) return known;
    return this.#series.length < this.#maxSeries ? this.#add(values) : this.#shared(values);
  }

  #add(values: readonly string[]): Series {
    const series = this.make();
    const labels = Object.fromEntries(this.#labelNames.map((name, index) => [name, values[index] ?? '']));
    this.#series.push({ labels, series });
    this.#byLabels.set(values, series);
    return series;
  }

  #shared(dropped: readonly string[]): Series {
    const key = dropped.join('\u0000');
    if (this.#dropped.size < this.#maxSeries && !this.#dropped.has(key)) {
      this.#dropped.add(key);
      this.#families.dropped += 1;
    }
    const values = this.#labelNames.map(() => otherName);
    return this.#byLabels.get(values) ?? this.#add(values);
  }

  protected abstract make(): Series;
  protected abstract samples(series: Series, labels: Readonly<Record<string, string>>): Sample[];

  /** Called by prom-client for each scrape. */
  async getForPromString(): Promise<{ name: string; help: string; type: string; values: Sample[] }> {
    const values = this.#series.flatMap(({ labels, series }) => this.samples(series, labels));
    return { name: this.name, help: this.help, type: this.type, values };
  }

  get = (): Promise<{ values: Sample[] }> => this.getForPromString();
}

export class CounterSeries {
  value = 0;

  add(amount = 1): void {
    this.value += amount;
  }
}

export class Counter<Labels extends Names> extends Family<CounterSeries, Labels> {
  readonly type = 'counter';

  protected make(): CounterSeries {
    return new CounterSeries();
  }

  protected samples({ value }: CounterSeries, labels: Readonly<Record<string, string>>): Sample[] {
    return [{ labels, value }];
  }
}

export class HistogramSeries {
  readonly #bounds: readonly number[];
  readonly counts: number[];
  readonly exemplars: (Sample['exemplar'] | undefined)[];
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
    this.exemplars = new Array(bounds.length + 1);
  }

  /** `exemplar` is kept when it was sampled; otherwise a dashboard's link would be dead. */
  observe(value: number, exemplar: Exemplar | null = null): void {
    let low = 0;
    let high = this.#bounds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (value <= (this.#bounds[middle] as number)) high = middle;
      else low = middle + 1;
    }
    (this.counts[low] as number) += 1;
    this.sum += value;
    if (exemplar?.sampled !== true) return;
    const { traceId: trace_id, spanId: span_id } = exemplar;
    this.exemplars[low] = { labelSet: { trace_id, span_id }, value, timestamp: Date.now() / 1000 };
  }
}

export class Histogram<Labels extends Names> extends Family<HistogramSeries, Labels> {
  readonly type = 'histogram';
  readonly #bounds: readonly number[];
  readonly #bucketLabels: readonly { readonly le: string }[];

  constructor(families: Families, name: string, family: HistogramFamily<Labels>) {
    super(families, name, family);
    this.#bounds = family.buckets;
    this.#bucketLabels = [...family.buckets.map(String), '+Inf'].map((le) => ({ le }));
  }

  protected make(): HistogramSeries {
    return new HistogramSeries(this.#bounds);
  }

  protected samples(series: HistogramSeries, sharedLabels: Readonly<Record<string, string>>): Sample[] {
    let count = 0;
    const buckets = this.#bucketLabels.map((labels, index): Sample => {
      count += series.counts[index] as number;
      const exemplar = series.exemplars[index];
      const sample = { metricName: `${this.name}_bucket`, labels, sharedLabels, value: count };
      return exemplar === undefined ? sample : { ...sample, exemplar };
    });
    const total = (suffix: string, value: number): Sample => ({
      metricName: `${this.name}_${suffix}`,
      labels: {},
      sharedLabels,
      value,
    });
    return [...buckets, total('sum', series.sum), total('count', count)];
  }
}
