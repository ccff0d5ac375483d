/** One series of a scrape. */
export interface SeriesLine {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Trace id of the exemplar, or null. */
  readonly exemplar: string | null;
}

export interface Exposition {
  /** Family name (counters without `_total`) → type. */
  readonly families: ReadonlyMap<string, string>;
  readonly helps: ReadonlyMap<string, string>;
  readonly series: readonly SeriesLine[];
}

/** Reads the OpenMetrics text form, as far as prom-client writes it. Throws on a line that is none. */
export function readExposition(text: string): Exposition {
  const families = new Map<string, string>();
  const helps = new Map<string, string>();
  const series: SeriesLine[] = [];
  for (const line of text.split('\n')) {
    const [, keyword, name = '', rest = ''] = /^# (TYPE|HELP) (\S+) (.*)$/.exec(line) ?? [];
    if (keyword === 'TYPE') families.set(name, rest);
    if (keyword === 'HELP') helps.set(name, rest);
    if (line.startsWith('#') || line === '') continue;
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*?)\})? (\S+)(?: # \{(.*)\} \S+ \S+)?$/.exec(line);
    if (match === null) throw new Error(`not a series: ${line}`);
    const labels = Object.fromEntries(
      [...(match[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, value]) => [key, value]),
    ) as Record<string, string>;
    const exemplar = /trace_id="([^"]*)"/.exec(match[4] ?? '')?.[1] ?? null;
    series.push({ name: match[1] ?? '', labels, value: Number(match[3]), exemplar });
  }
  return { families, helps, series };
}

/** Sum of the series of a name whose labels include these. */
export function sumOf(
  { series }: Exposition,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  return series
    .filter((one) => one.name === name)
    .filter((one) => Object.entries(labels).every(([key, value]) => one.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0);
}
