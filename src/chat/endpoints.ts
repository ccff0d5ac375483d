import type { Candidate } from '../core/candidate.ts';
import type { CommercialProviderName, ProviderName } from '../core/provider-name.ts';
import { selfHostedEndpoint, vendorEndpoint } from '../core/self-hosted-url.ts';

/** Where a candidate's path is added to. */
export interface Endpoint {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Path before the vendor's own, without a trailing slash. */
  readonly prefix: string;
}

export interface Endpoints {
  of(candidate: Candidate): Endpoint;
}
