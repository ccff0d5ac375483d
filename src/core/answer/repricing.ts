import { otherName } from '../other-name.ts';
import type { ProviderName } from '../provider-name.ts';
import type { RoutingTables } from '../tables/tables.ts';
import { costMicroUsd } from './cost.ts';
import type { Usage } from './usage.ts';

/** What one request used, and what it was charged. */
export interface PaidRow {
  readonly provider: ProviderName;
  readonly model: string;
  readonly usage: Usage;
  readonly costMicroUsd: bigint;
}

/** Sums over requests: exact, however many. */
export interface RepricedSums {
  requests: bigint;
  inputTokens: bigint;
  outputTokens: bigint;
  /** As the rows say. */
  costMicroUsd: bigint;
  /** As the same usage costs under the other prices: each request rounded once, as at its settlement. */
  repricedMicroUsd: bigint;
  /** Requests with usage whose model those prices do not know: they cost 0 there. */
  unpriced: bigint;
}

export interface RepricedModel extends RepricedSums {
  readonly provider: ProviderName;
  readonly model: string;
}

/** Overrides may name any model: those beyond so many are one line. */
const maxModels = 10_000;

const nothing = (): RepricedSums => ({
  requests: 0n,
  inputTokens: 0n,
  outputTokens: 0n,
  costMicroUsd: 0n,
  repricedMicroUsd: 0n,
  unpriced: 0n,
});

/** What requests would have cost under other prices, per provider and model. */
export class Repricing {
  readonly totals = nothing();
  readonly #price: RoutingTables['price'];
  readonly #models = new Map<string, RepricedModel>();

  constructor({ price }: Pick<RoutingTables, 'price'>) {
    this.#price = price;
  }

  add(row: PaidRow): void {
    const { provider, model, usage } = row;
    const price = this.#price(provider, model);
    const repriced = costMicroUsd(usage, price);
    const isUnpriced = price === null && usage.basis !== 'none';
    for (const sums of [this.totals, this.#sumsOf(provider, model)]) {
      sums.requests += 1n;
      sums.inputTokens += BigInt(usage.inputTokens);
      sums.outputTokens += BigInt(usage.outputTokens);
      sums.costMicroUsd += row.costMicroUsd;
      sums.repricedMicroUsd += repriced;
      if (isUnpriced) sums.unpriced += 1n;
    }
  }

  /** By provider, then model. */
  models(): readonly RepricedModel[] {
    const byName = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
    return [...this.#models.values()].sort(
      (a, b) => byName(a.provider, b.provider) || byName(a.model, b.model),
    );
  }

  #sumsOf(provider: ProviderName, model: string): RepricedSums {
    const known = this.#models.get(`${provider}:${model}`);
    if (known !== undefined) return known;
    const shown = this.#models.size < maxModels ? model : otherName;
    const name = `${provider}:${shown}`;
    const sums = this.#models.get(name) ?? { provider, model: shown, ...nothing() };
    this.#models.set(name, sums);
    return sums;
  }
}
