import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StatsGroup } from '../../core/stats-group.ts';
import { latencyBucketCount, latencyPercentile } from './latency-buckets.ts';
import type { SummedColumn } from './rollup-sums.ts';
import { summedColumns } from './rollup-sums.ts';

/** Added up in one go, a few milliseconds of work: chat requests have their turns in between. */
const rowsPerTurn = 250;

/** Exact sums over a set of requests, by the names of the rollups' columns; tokens of cache hits are included. */
export type RequestSums = Readonly<Record<SummedColumn, bigint>> & {
  /** Estimated from latency classes, whole milliseconds; null when there was no request. */
  readonly latencyMs: {
    readonly p50: number | null;
    readonly p95: number | null;
    readonly p99: number | null;
  };
};

/** One combination of values that occurred. */
export interface SumsGroup {
  readonly names: Readonly<Partial<Record<StatsGroup, string>>>;
  readonly sums: RequestSums;
}

/**
 * Sums of bigints arrive as text. Those of latency classes are one text, taken apart when its row is added up: as
 * lists, the rows of the largest answer took 18 MiB.
 */
export type SumsRow = Record<SummedColumn | StatsGroup, string> & { readonly latency_buckets: string };

class Adding {
  readonly #sums = Object.fromEntries(summedColumns.map((name) => [name, 0n])) as Record<
    SummedColumn,
    bigint
  >;
  readonly #buckets = new Array<number>(latencyBucketCount).fill(0);

  /** `buckets`: of the same row, taken apart. */
  add(row: SumsRow, buckets: readonly string[]): this {
    for (const name of summedColumns) this.#sums[name] += BigInt(row[name] ?? 0);
    buckets.forEach((count, index) => {
      this.#buckets[index] = (this.#buckets[index] ?? 0) + Number(count);
    });
    return this;
  }

  sums(): RequestSums {
    const percentile = (fraction: number): number | null => latencyPercentile(this.#buckets, fraction);
    return {
      ...this.#sums,
      latencyMs: { p50: percentile(0.5), p95: percentile(0.95), p99: percentile(0.99) },
    };
  }
}

/** Adds up what statements found; groups in the order in which they came first. */
export class SumGroups {
  readonly totals = new Adding();
  readonly #groups = new Map<string, { readonly names: SumsGroup['names']; readonly adding: Adding }>();
  readonly #groupBy: readonly StatsGroup[];

  constructor(groupBy: readonly StatsGroup[]) {
    this.#groupBy = groupBy;
  }

  get size(): number {
    return this.#groups.size;
  }

  /** Takes the rows out of the list as they are added up: their groups take as much again. */
  async add(rows: SumsRow[]): Promise<void> {
    while (rows.length > 0) {
      for (const row of rows.splice(0, rowsPerTurn)) {
        const buckets = row.latency_buckets.split(',');
        this.totals.add(row, buckets);
        if (this.#groupBy.length > 0) this.#group(row).add(row, buckets);
      }
      if (rows.length > 0) await nextTurn();
    }
  }

  #group(row: SumsRow): Adding {
    const values = this.#groupBy.map((name) => row[name]);
    const key = JSON.stringify(values);
    const known = this.#groups.get(key);
    if (known !== undefined) return known.adding;
    const names = Object.fromEntries(this.#groupBy.map((name, index) => [name, values[index]]));
    const adding = new Adding();
    this.#groups.set(key, { names, adding });
    return adding;
  }

  /** By their names, as the statement does: several statements leave them in no order. */
  sort(): void {
    const sorted = [...this.#groups].sort(([, one], [, other]) => {
      for (const name of this.#groupBy) {
        const [here, there] = [one.names[name] ?? '', other.names[name] ?? ''];
        if (here !== there) return here < there ? -1 : 1;
      }
      return 0;
    });
    this.#groups.clear();
    for (const [key, group] of sorted) this.#groups.set(key, group);
  }

  *all(): Generator<SumsGroup> {
    for (const { names, adding } of this.#groups.values()) yield { names, sums: adding.sums() };
  }
}
