/** The part of Prometheus's HTTP API that dashboards use. */

const CALL_LIMIT_MS = 15_000;

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

export interface Series {
  readonly labels: Labels;
  /** Seconds since 1970 and value, oldest first. */
  readonly points: readonly (readonly [seconds: number, value: number])[];
}

export interface Exemplar {
  readonly labels: Labels;
  readonly value: number;
  readonly seconds: number;
}

export interface RuleState {
  readonly name: string;
  readonly type: 'alerting' | 'recording';
  readonly health: string;
  readonly lastError?: string;
}

export interface PrometheusApi {
  /** What an expression gives at a moment, now by default. Rejects when Prometheus refuses it. */
  query(expr: string, seconds?: number): Promise<readonly Sample[]>;
  queryRange(expr: string, from: number, to: number, step: number): Promise<readonly Series[]>;
  exemplars(expr: string, from: number, to: number): Promise<readonly Exemplar[]>;
  rules(): Promise<readonly RuleState[]>;
}

interface WireVector {
  readonly metric: Labels;
  readonly value: readonly [number, string];
}
interface WireMatrix {
  readonly metric: Labels;
  readonly values: readonly (readonly [number, string])[];
}
interface WireExemplars {
  readonly exemplars: readonly {
    readonly labels: Labels;
    readonly value: string;
    readonly timestamp: number;
  }[];
}

/** A client of the server at `url`. */
export function prometheusApi(url: string): PrometheusApi {
  const ask = async (path: string, parameters: Readonly<Record<string, string>>): Promise<unknown> => {
    const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(parameters)}`, {
      signal: AbortSignal.timeout(CALL_LIMIT_MS),
    });
    const answer = (await response.json()) as { status: string; data?: unknown; error?: string };
    if (answer.status !== 'success') throw new Error(`${answer.error}: ${parameters['query']}`);
    return answer.data;
  };
  return {
    query: async (query, seconds) => {
      const time: Record<string, string> = seconds === undefined ? {} : { time: String(seconds) };
      const { result } = (await ask('query', { query, ...time })) as { result: readonly WireVector[] };
      return result.map(({ metric, value }) => ({ labels: metric, value: toNumber(value[1]) }));
    },
    queryRange: async (query, from, to, step) => {
      const range = { query, start: String(from), end: String(to), step: String(step) };
      const { result } = (await ask('query_range', range)) as { result: readonly WireMatrix[] };
      return result.map(({ metric, values }) => ({
        labels: metric,
        points: values.map(([seconds, value]) => [seconds, toNumber(value)] as const),
      }));
    },
    exemplars: async (query, from, to) => {
      const range = { query, start: String(from), end: String(to) };
      const series = (await ask('query_exemplars', range)) as readonly WireExemplars[];
      return series.flatMap(({ exemplars }) =>
        exemplars.map(({ labels, value, timestamp }) => ({
          labels,
          value: Number(value),
          seconds: timestamp,
        })),
      );
    },
    rules: async () => {
      const { groups } = (await ask('rules', {})) as { groups: readonly { rules: readonly RuleState[] }[] };
      return groups.flatMap(({ rules }) => rules);
    },
  };
}

/** Prometheus writes `+Inf`, `-Inf` and `NaN`. */
function toNumber(text: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  return text === '-Inf' ? Number.NEGATIVE_INFINITY : Number(text);
}
