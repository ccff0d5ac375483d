/**
 * The closed list of providers (SPEC 4.2) and where each one's answers are produced (SPEC 2.2).
 * `declared` means: the user says so when registering the key. Adding a provider: one line here,
 * one folder in providers/, one line in providers/registry.ts.
 */
export const residencyByProvider = {
  openai: 'global',
  anthropic: 'global',
  together: 'global',
  sarvam: 'india',
  self_hosted: 'declared',
} as const;

export type ProviderName = keyof typeof residencyByProvider;

export const providerNames = Object.keys(residencyByProvider) as [ProviderName, ...ProviderName[]];

/** Providers whose address is fixed; the user brings only a key. */
export type CommercialProviderName = Exclude<ProviderName, 'self_hosted'>;

export function isProviderName(value: string): value is ProviderName {
  return Object.hasOwn(residencyByProvider, value);
}
