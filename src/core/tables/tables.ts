import type { Limits } from '../limits/user-limits.ts';
import type { ProviderName } from '../provider-name.ts';
import type { ResidencyBound } from '../request/residency.ts';
import type { TierName } from './mode.ts';
import type { ModelFacts } from './model-facts.ts';
import type { Price } from './price.ts';
import type { RoutingTablesDocument, TierCandidate } from './routing-tables.ts';

/**
 * The compiled tables a request holds from its start to its end. Nothing changes them; a reload makes new ones.
 */
export interface RoutingTables {
  readonly document: RoutingTablesDocument;
  /** First 16 hex digits of the document's SHA-256; on each log row, /readyz and metrics. */
  readonly hash: string;
  /** Counts successful loads of this process, from 1. */
  readonly generation: number;
  readonly indiaRegions: ReadonlySet<string>;
  /** What holds for every request of this deployment. */
  readonly residency: ResidencyBound;
  /** What is limited for each user, but for exceptions; null: nothing. */
  readonly userLimits: Limits | null;
  /** Null when there is no legacy surface. */
  readonly legacy: { readonly name: string; readonly sunsetMs: number } | null;
  /** The models that tiers and prices name, as often as they do. */
  readonly named: readonly { readonly provider: ProviderName; readonly model: string }[];
  /** Whether a model is among them. */
  names(provider: ProviderName, model: string): boolean;
  tier(name: TierName): readonly TierCandidate[];
  facts(provider: ProviderName, model: string): ModelFacts;
  /** Null: unknown model, cost is shown as 0. */
  price(provider: ProviderName, model: string): Price | null;
  /** What a model without a price may cost at most, as far as the tables know its provider; null: they do not. */
  dearest(provider: ProviderName): Price | null;
}
