import { randomUUID } from 'node:crypto';
import { eventually } from '../measure/eventually.ts';
import type { VendorName } from '../vendors/vendor-pack.ts';
import { vendorNames } from '../vendors/vendor-pack.ts';
import type { KeyRecord, Registration } from '../vendors/wire-types.ts';
import type { HttpClient } from './http-client.ts';
import { httpClient } from './http-client.ts';

export interface User {
  readonly id: string;
  readonly email: string;
  readonly key: string;
  /** A client that sends this user's service key. */
  readonly client: HttpClient;
}

/** Registers a user with a fresh address, without provider keys. */
export async function registerUser(url: string, email = `${randomUUID()}@example.com`): Promise<User> {
  const response = await httpClient(url).post('/v1/users', { email });
  if (response.status !== 201) throw new Error(`registration: ${response.status} ${response.text}`);
  const { user_id: id, api_key: key } = response.json<Registration>();
  return { id, email, key, client: httpClient(url, key) };
}

/** Registers one provider key; the record. */
export async function addKey(user: User, body: Readonly<Record<string, unknown>>): Promise<KeyRecord> {
  const response = await user.client.post('/v1/keys', body);
  if (response.status !== 201) throw new Error(`key: ${response.status} ${response.text}`);
  return response.json<KeyRecord>();
}

/** The secret that `registerWithKeys` stores for a provider of a user. */
export function providerSecret(user: User, provider: string): string {
  return `sk-${provider}-${user.id}`;
}

/**
 * Registers a user who holds a key for each of these providers (all commercial ones by default). Asked for again where
 * Postgres was late: on a busy machine a test may be tried again, a hook may not.
 */
export async function registerWithKeys(
  url: string,
  providers: readonly VendorName[] = vendorNames,
): Promise<User> {
  const register = async (): Promise<User> => {
    const user = await registerUser(url);
    for (const provider of providers)
      await addKey(user, { provider, api_key: providerSecret(user, provider) });
    return user;
  };
  return eventually(() => register().catch(unlessLate));
}

function unlessLate(error: Error): undefined {
  if (!error.message.includes('"database_unavailable"')) throw error;
}
