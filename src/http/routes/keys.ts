import type { AddedKey, KeyRefusal, ProviderKeyRow } from '../../adapters/postgres/provider-keys.ts';
import type { RegisterKeyBody } from '../../core/account/account-requests.ts';
import type { NewProviderKey } from '../../core/account/new-provider-key.ts';
import { checkProviderKey } from '../../core/account/new-provider-key.ts';
import type { GatewayError } from '../../core/errors.ts';
import { AuthenticationError, ConflictError, InvalidRequestError, NotFoundError } from '../../core/errors.ts';
import type { ProviderName } from '../../core/provider-name.ts';
import type { RoutingTables } from '../../core/tables/tables.ts';
import type { Audit } from '../audit.ts';
import { askerOf } from '../audit.ts';
import type { Handlers } from '../mount.ts';
import { providerKeyRecord } from '../schemas/provider-key-record.ts';

export interface KeyStore {
  /** `askedWith`: the service key of the caller. */
  readonly addProviderKey: (userId: string, key: NewProviderKey, askedWith: string) => Promise<AddedKey>;
  readonly listProviderKeys: (userId: string) => Promise<readonly ProviderKeyRow[]>;
  /** The key's provider; null for a key that is not the caller's. */
  readonly deleteProviderKey: (userId: string, keyId: string) => Promise<ProviderName | null>;
}

export interface KeysDeps {
  readonly tables: () => RoutingTables;
  readonly httpTelemetry: Audit;
}

/** Throws InvalidRequestError for fields that do not go with the provider. */
function checkedKey(body: RegisterKeyBody): NewProviderKey {
  const checked = checkProviderKey(body);
  if (checked.ok) return checked.key;
  throw new InvalidRequestError(`${checked.field}: ${checked.message}`, checked.field);
}

/** What the caller is told of a key that may not stand beside the others. */
export function keyRefused(refusal: KeyRefusal, provider: ProviderName): GatewayError {
  switch (refusal.kind) {
    case 'not-asked':
      return new AuthenticationError();
    case 'taken':
      return new ConflictError(`A key for ${provider} is already registered; delete it first.`, 'provider');
    case 'too-many-keys': {
      const message = `At most ${refusal.most} ${provider} keys can be registered; delete one first.`;
      return new InvalidRequestError(message, 'provider', 'too_many_keys');
    }
    case 'too-many-bytes': {
      const message = `All provider keys of a user may take ${refusal.most} bytes together; delete one first.`;
      return new InvalidRequestError(message, 'api_key', 'too_many_key_bytes');
    }
  }
}

/** `/v1/keys` (SPEC 4.2-4.4). Secrets go in and never come out. */
export function keysHandlers(
  store: KeyStore,
  { tables, httpTelemetry }: KeysDeps,
): Handlers<'addKey' | 'listKeys' | 'deleteKey'> {
  return {
    async addKey({ body, request }) {
      const key = checkedKey(body);
      const { userId, serviceKeyId } = request.account;
      const added = await store.addProviderKey(userId, key, serviceKeyId);
      if (added.kind !== 'added') throw keyRefused(added, key.provider);
      const { row } = added;
      const audit = { audit: 'key_added', userId, keyId: row.id, provider: row.provider } as const;
      httpTelemetry.audited(audit, askerOf(request));
      return providerKeyRecord(row, tables().indiaRegions);
    },
    async listKeys({ request }) {
      const rows = await store.listProviderKeys(request.account.userId);
      return rows.map((row) => providerKeyRecord(row, tables().indiaRegions));
    },
    async deleteKey({ params, request }) {
      const { userId } = request.account;
      const keyId = params.key_id;
      const provider = await store.deleteProviderKey(userId, keyId);
      if (provider === null) throw new NotFoundError('No such provider key.');
      httpTelemetry.audited({ audit: 'key_deleted', userId, keyId, provider }, askerOf(request));
    },
  };
}
