import { parseSelfHostedUrl } from '../net/self-hosted-url.ts';
import type { ProviderName } from '../provider-name.ts';
import { isUserServer, userServerNames } from '../provider-name.ts';
import { Secret } from '../secret/secret.ts';
import type { RegisterKeyBody } from './account-requests.ts';
import { canBeNamed } from './account-requests.ts';

/** A provider key that may be stored: the fields are those that go with its provider. */
export interface NewProviderKey {
  readonly provider: ProviderName;
  readonly apiKey: Secret;
  /** Set for users' servers only, normalised. */
  readonly baseUrl: string | null;
  readonly declaredRegion: string | null;
  readonly label: string | null;
}

/** `message` fits behind the name of the field. */
export type CheckedProviderKey =
  | { readonly ok: true; readonly key: NewProviderKey }
  | { readonly ok: false; readonly field: keyof RegisterKeyBody; readonly message: string };

const userServers = userServerNames.join(', ');

const refuse = (field: keyof RegisterKeyBody, message: string): CheckedProviderKey => ({
  ok: false,
  field,
  message,
});

/**
 * Which fields go with which provider (SPEC 4.2), of a body that has the right shape: for `POST /v1/keys` and for the
 * keys file of a sidecar. The table has the same rule as CHECKs.
 */
export function checkProviderKey(body: RegisterKeyBody): CheckedProviderKey {
  const { provider, base_url: baseUrl, declared_region: region } = body;
  const shared = { provider, apiKey: new Secret(body.api_key), label: body.label ?? null };
  if (!isUserServer(provider)) {
    for (const name of ['base_url', 'declared_region'] as const) {
      if (body[name] != null) return refuse(name, `may be set for ${userServers} only.`);
    }
    return { ok: true, key: { ...shared, baseUrl: null, declaredRegion: null } };
  }
  // Of vendors' keys there is one each, which no label has to name.
  if (shared.label !== null && !canBeNamed(shared.label)) {
    return refuse('label', 'may not hold "/" or ":", nor be blank: overrides are split there.');
  }
  if (baseUrl == null) return refuse('base_url', `is required for ${provider}.`);
  if (region == null) return refuse('declared_region', `is required for ${provider}.`);
  const parsed = parseSelfHostedUrl(baseUrl);
  if (!parsed.ok) return refuse('base_url', parsed.message);
  return { ok: true, key: { ...shared, baseUrl: parsed.url, declaredRegion: region } };
}
