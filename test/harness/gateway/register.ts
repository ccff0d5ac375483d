import { randomUUID } from 'node:crypto';
import type { VendorName } from '../vendors/vendor-pack.ts';
import { vendorNames } from '../vendors/vendor-pack.ts';
import type { KeyRecord, Registration } from '../vendors/wire-types.ts';
import { answeredInTime } from './answered-in-time.ts';
import type { HttpClient } from './http-client.ts';
import { httpClient } from './http-client.ts';

export interface User {
  readonly id: string;
  readonly email: string;
  readonly key: string;
  /** A client that sends this user's service key. */
  readonly client: HttpClient;
}

/** Registers a user, with a fresh address unless one is named, and without provider keys. */
export async function registerUser(url: string, named?: string): Promise<User> {
  let email = '';
  const response = await answeredInTime(() => {
    email = named ?? `${randomUUID()}@example.com`;
    return httpClient(url).post('/v1/users', { email });
  });
  if (response.status !== 201) throw new Error(`registration: ${response.status} ${response.text}`);
  const { user_id: id, api_key: key } = response.json<Registration>();
  return { id, email, key, client: httpClient(url, key) };
}

/** Registers one provider key, of which the user has no other one of its provider; the record. */
export async function addKey(user: User, body: Readonly<Record<string, unknown>>): Promise<KeyRecord> {
  const response = await answeredInTime(() => user.client.post('/v1/keys', body));
  if (response.status === 409 && response.asked > 1) {
    const keys = (await user.client.get('/v1/keys')).json<readonly KeyRecord[]>();
    const own = keys.find(({ provider }) => provider === body['provider']);
    if (own !== undefined) return own;
  }
  if (response.status !== 201) throw new Error(`key: ${response.status} ${response.text}`);
  return response.json<KeyRecord>();
}

/** The secret that `registerWithKeys` stores for a provider of a user. */
export function providerSecret(user: User, provider: string): string {
  return `sk-${provider}-${user.id}`;
}

/** Registers a user who holds a key for each of these providers (all commercial ones by default). */
export async function registerWithKeys(
  url: string,
  providers: readonly VendorName[] = vendorNames,
): Promise<User> {
  const user = await registerUser(url);
  for (const provider of providers) await addKey(user, { provider, api_key: providerSecret(user, provider) });
  return user;
}
