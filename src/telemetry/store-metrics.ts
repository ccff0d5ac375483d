import type { OpenKey, ResponseCache } from '../chat/ports.ts';
import { byteBuckets, operationBuckets } from './buckets.ts';
import type { Families, HistogramSeries } from './series.ts';

const seconds = (sinceMs: number): number => (performance.now() - sinceMs) / 1000;

/** The answer cache and the opening of provider keys, by wrapping them. */
export class StoreMetrics {
  readonly #get: HistogramSeries;
  readonly #set: HistogramSeries;
  readonly #bytes: HistogramSeries;
  readonly #unseal: HistogramSeries;

  constructor(families: Families) {
    const operations = families.histogram(
      'gw_cache_operation_seconds',
      'Operations of the answer cache, sealing included.',
      ['op'],
      operationBuckets,
    );
    this.#get = operations.of('get');
    this.#set = operations.of('set');
    this.#bytes = families
      .histogram('gw_cache_entry_bytes', 'Size of the answers that were stored.', [], byteBuckets)
      .of();
    this.#unseal = families
      .histogram('gw_key_unseal_seconds', 'Opening a sealed provider key.', [], operationBuckets)
      .of();
  }

  cache(store: ResponseCache): ResponseCache {
    return {
      get: async (key) => {
        const startedAtMs = performance.now();
        const value = await store.get(key);
        this.#get.observe(seconds(startedAtMs));
        return value;
      },
      set: async (key, value, ttlSeconds) => {
        const startedAtMs = performance.now();
        this.#bytes.observe(value.length);
        await store.set(key, value, ttlSeconds);
        this.#set.observe(seconds(startedAtMs));
      },
    };
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
