/** What a counter family is, whose series are kept here. */
export interface CounterFamily<Labels extends readonly string[]> {
  readonly kind: 'counter';
  readonly help: string;
  readonly labels: Labels;
  /** Label sets; further ones share a series. */
  readonly maxSeries: number;
}

/** The same of a histogram. */
export interface HistogramFamily<Labels extends readonly string[]> {
  readonly kind: 'histogram';
  readonly help: string;
  readonly labels: Labels;
  readonly maxSeries: number;
  readonly buckets: readonly number[];
}

/** A number that another part owns, read at each scrape; that part bounds its label sets. */
export interface ReadFamily<Kind extends 'gauge' | 'counter', Labels extends readonly string[]> {
  readonly kind: `read ${Kind}`;
  readonly help: string;
  readonly labels: Labels;
}

/** A gauge, read at each scrape. */
export function gaugeOf<const Labels extends readonly string[]>(
  help: string,
  ...labels: Labels
): ReadFamily<'gauge', Labels> {
  return { kind: 'read gauge', help, labels };
}

/** A counter, read at each scrape. */
export function countOf<const Labels extends readonly string[]>(
  help: string,
  ...labels: Labels
): ReadFamily<'counter', Labels> {
  return { kind: 'read counter', help, labels };
}
