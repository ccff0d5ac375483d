import type { Candidate } from '../core/candidate.ts';
import { selfHostedEndpoint, vendorEndpoint } from '../core/net/self-hosted-url.ts';
import type { ProviderName, VendorName } from '../core/provider-name.ts';
import { isUserServer } from '../core/provider-name.ts';
import type { Provider } from '../providers/provider.ts';

/** Where a candidate's path is added to. */
export interface ProviderEndpoint {
  /** Scheme, host and port: the only place its key may go. */
  readonly origin: string;
  /** Path before the vendor's own, without a trailing slash. */
  readonly prefix: string;
}

/**
 * Addresses of all candidates: the vendor's own (or the operator's setting), parsed once; of a user's server its key's
 * base_url, parsed per attempt. The provider decides which of the two, never the row: a base_url beside a vendor's
 * key leads nowhere. Null where the key of a user's server has no address that can be read.
 */
export function endpointsOf(
  providers: Readonly<Record<ProviderName, Provider>>,
  settings: Readonly<Partial<Record<VendorName, string>>>,
): (candidate: Pick<Candidate, 'provider' | 'key'>) => ProviderEndpoint | null {
  const vendors = new Map<string, ProviderEndpoint>();
  for (const provider of Object.values(providers)) {
    const configured = isUserServer(provider.name) ? undefined : settings[provider.name];
    const base = configured ?? provider.defaultBaseUrl;
    if (base !== null) vendors.set(provider.name, vendorEndpoint(base));
  }
  return (candidate) => {
    const { provider, key } = candidate;
    if (!isUserServer(provider)) return vendors.get(provider) as ProviderEndpoint;
    return key.baseUrl === null || !URL.canParse(key.baseUrl) ? null : selfHostedEndpoint(key.baseUrl);
  };
}
