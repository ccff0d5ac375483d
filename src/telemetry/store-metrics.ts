import type { OpenKey, ResponseCache } from '../chat/ports.ts';
import type { CounterSeries, Families, HistogramSeries } from './series.ts';

const seconds = (sinceMs: number): number => (performance.now() - sinceMs) / 1000;

/** What is asked of Postgres beside the request log: the values of `gw_db_query_seconds{query}`. */
const queryNames = [
  'find_account',
  'register_user',
  'add_key',
  'list_keys',
  'add_service_key',
  'list_service_keys',
  'delete_service_key',
  'delete_key',
  'read_key_uses',
  'read_log',
  'read_logs',
  'read_stats',
  'read_spent',
  'count_sealed_keys',
  'list_users',
  'find_user',
  'set_user_policy',
  'delete_user',
  'read_spend',
] as const;
type QueryName = (typeof queryNames)[number];

/** The answer cache, the opening of provider keys and the work of Postgres, by wrapping them. */
export class StoreMetrics {
  readonly #get: HistogramSeries;
  readonly #set: HistogramSeries;
  readonly #bytes: HistogramSeries;
  readonly #unseal: HistogramSeries;
  readonly #queries;
  readonly #flush: HistogramSeries;
  readonly #refused: CounterSeries;

  constructor(families: Families) {
    const operations = families.histogram('gw_cache_operation_seconds');
    this.#get = operations.of('get');
    this.#set = operations.of('set');
    this.#bytes = families.histogram('gw_cache_entry_bytes').of();
    this.#unseal = families.histogram('gw_key_unseal_seconds').of();
    this.#queries = families.histogram('gw_db_query_seconds');
    for (const name of queryNames) this.#queries.of(name);
    this.#flush = families.histogram('gw_log_flush_seconds').of();
    this.#refused = families.counter('gw_log_batches_refused_total').of();
  }

  cache(store: ResponseCache): ResponseCache {
    return {
      get: (key, userId) => {
        const startedAtMs = performance.now();
        const found = (value: Buffer | null): Buffer | null => {
          this.#get.observe(seconds(startedAtMs));
          return value;
        };
        const value = store.get(key, userId);
        return value instanceof Promise ? value.then(found) : found(value);
      },
      set: async (key, value, ttlSeconds, owner) => {
        const startedAtMs = performance.now();
        const isStored = await store.set(key, value, ttlSeconds, owner);
        if (isStored) this.#bytes.observe(value.length);
        this.#set.observe(seconds(startedAtMs));
        return isStored;
      },
    };
  }

  /** `run`, timed under this name whether it succeeds or not. */
  timeQuery<Args extends readonly unknown[], Result>(
    name: QueryName,
    run: (...args: Args) => Promise<Result>,
  ): (...args: Args) => Promise<Result> {
    return timed(this.#queries.of(name), run);
  }

  /** The group commit of the request log, timed. */
  timeFlush<Args extends readonly unknown[], Result>(
    run: (...args: Args) => Promise<Result>,
  ): (...args: Args) => Promise<Result> {
    return timed(this.#flush, run);
  }

  /** A group commit that took the slow insert. */
  batchRefused(): void {
    this.#refused.add();
  }

  openKey(open: OpenKey): OpenKey {
    return (key) => {
      const startedAtMs = performance.now();
      const secret = open(key);
      this.#unseal.observe(seconds(startedAtMs));
      return secret;
    };
  }
}

function timed<Args extends readonly unknown[], Result>(
  series: HistogramSeries,
  run: (...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  return async (...args) => {
    const startedAtMs = performance.now();
    try {
      return await run(...args);
    } finally {
      series.observe(seconds(startedAtMs));
    }
  };
}
