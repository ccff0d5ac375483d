import type { ProviderName } from './provider-name.ts';
import type { Residency } from './request/residency.ts';
import type { ModelFacts } from './tables/model-facts.ts';
import type { Price } from './tables/price.ts';

/** A provider secret as it lies in the database: opened for one attempt, never cached open. */
export interface SealedSecret {
  /** What it is bound to: 1: record, user and provider; 2: base_url and declared_region as well. */
  readonly version: number;
  /** Id of the master key that sealed it. */
  readonly masterKeyId: string;
  readonly nonce: Buffer;
  /** Ciphertext followed by the 16-byte tag. */
  readonly ciphertext: Buffer;
}

/** One provider key of a user, as the planner and the attempt see it. */
export interface HeldKey {
  readonly id: string;
  readonly userId: string;
  readonly provider: ProviderName;
  readonly declaredRegion: string | null;
  /** Set for users' servers only; whatever else stands here is not looked at. */
  readonly baseUrl: string | null;
  readonly label: string | null;
  readonly createdAtMs: number;
  readonly sealed: SealedSecret;
}

/** Provider + model + key: one thing that can be tried. */
export interface Candidate {
  readonly provider: ProviderName;
  readonly model: string;
  readonly key: HeldKey;
  readonly residency: Residency;
  readonly facts: ModelFacts;
  readonly price: Price | null;
  /** What budgets take it to cost where it has no price; null: nothing. */
  readonly assumedPrice: Price | null;
  /** True when it was moved behind others, because it has failed too often of late. */
  readonly heldBack: boolean;
}
