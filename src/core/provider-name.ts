/** What is decided about a provider as a whole, wherever it is asked. */
interface ProviderTraits {
  /** Where its answers are produced (SPEC 2.2); `declared`: the user says so when registering the key. */
  readonly residency: 'global' | 'india' | 'declared';
  /**
   * Whose server answers. A `vendor` has one address for everybody, and a user one key of it. A key of a `user` server
   * carries its own address and region and may be one of many; nobody else shares that server or knows its models, so
   * it is never routed to, only overridden to.
   */
  readonly server: 'vendor' | 'user';
  /** Whether tables may price its models; answers of others cost 0. */
  readonly priced: boolean;
}

/**
 * The closed list of providers (SPEC 4.2). CONTRIBUTING.md says what adding a vendor takes; another of users' servers
 * takes a migration too, since provider_keys says the same in its CHECKs and its unique index.
 */
export const providerTraits = {
  openai: { residency: 'global', server: 'vendor', priced: true },
  anthropic: { residency: 'global', server: 'vendor', priced: true },
  together: { residency: 'global', server: 'vendor', priced: true },
  sarvam: { residency: 'india', server: 'vendor', priced: true },
  self_hosted: { residency: 'declared', server: 'user', priced: false },
} as const satisfies Record<string, ProviderTraits>;

type Traits = typeof providerTraits;
type Having<Trait extends Partial<ProviderTraits>> = {
  [Name in keyof Traits]: Traits[Name] extends Trait ? Name : never;
}[keyof Traits];

export type ProviderName = keyof Traits;
/** A provider with one address; the user brings only a key. */
export type VendorName = Having<{ server: 'vendor' }>;
/** A provider whose keys carry their address. */
export type UserServerName = Having<{ server: 'user' }>;
/** A provider that tables may have prices for. */
export type PricedProviderName = Having<{ priced: true }>;

/** One that they may have none for. */
export type UnpricedProviderName = Exclude<ProviderName, PricedProviderName>;

type NonEmpty<Name> = [Name, ...Name[]];

export const providerNames = Object.keys(providerTraits) as NonEmpty<ProviderName>;

export function isUserServer(provider: ProviderName): provider is UserServerName {
  return providerTraits[provider].server === 'user';
}

export function isPriced(provider: ProviderName): provider is PricedProviderName {
  return providerTraits[provider].priced;
}

export const vendorNames = providerNames.filter((name) => !isUserServer(name)) as NonEmpty<VendorName>;
export const userServerNames = providerNames.filter(isUserServer) as NonEmpty<UserServerName>;
export const pricedProviderNames = providerNames.filter(isPriced) as NonEmpty<PricedProviderName>;

export function isProviderName(value: string): value is ProviderName {
  return Object.hasOwn(providerTraits, value);
}
