import type { z } from 'zod';
import type {
  AddedServiceKey,
  DeletedServiceKey,
  NewServiceKey,
  ServiceKeyRow,
} from '../../adapters/postgres/service-keys.ts';
import type { Clock } from '../../chat/ports.ts';
import type { newServiceKeySchema } from '../../core/account/account-requests.ts';
import { AuthenticationError, ConflictError, InvalidRequestError, NotFoundError } from '../../core/errors.ts';
import { serviceKeyFacts } from '../admin/operator-records.ts';
import type { Asker, Audit } from '../audit.ts';
import { askerOf } from '../audit.ts';
import type { Handlers, RouteAnswer } from '../mount.ts';
import type { ServiceKeyRecord } from '../schemas/answer-schemas.ts';

/** What the owner and an operator do alike. */
export interface UserKeyStore {
  /** `askedWith`: the service key of the caller; null: an operator. */
  readonly addServiceKey: (
    userId: string,
    key: NewServiceKey,
    askedWith: string | null,
  ) => Promise<AddedServiceKey>;
  readonly listServiceKeys: (userId: string) => Promise<readonly ServiceKeyRow[]>;
}

export interface ServiceKeyStore extends UserKeyStore {
  readonly deleteServiceKey: (userId: string, keyId: string) => Promise<DeletedServiceKey>;
}

export interface ServiceKeysDeps {
  readonly clock: Clock;
  readonly httpTelemetry: Audit;
}

export const noServiceKey = (): NotFoundError => new NotFoundError('No such service key.');

/** A service key as its owner sees it; `current` is the one that asked. */
function serviceKeyRecord(row: ServiceKeyRow, currentId: string): ServiceKeyRecord {
  return { ...serviceKeyFacts(row), current: row.id === currentId };
}

interface MadeServiceKey {
  readonly row: ServiceKeyRow;
  readonly apiKey: string;
}

/**
 * Makes another service key of a user and says so to the audit. Throws InvalidRequestError for an end in the past or a
 * key too many; for a user who is gone NotFoundError, where an operator asks (`askedWith`: null), else
 * AuthenticationError, as for a key that is.
 */
export async function makeServiceKey(
  store: UserKeyStore,
  deps: ServiceKeysDeps,
  userId: string,
  askedWith: string | null,
  { label = null, expires_at: expiresAtMicros = null }: z.output<typeof newServiceKeySchema>,
  asker: Asker,
): Promise<MadeServiceKey> {
  if (expiresAtMicros !== null && expiresAtMicros <= BigInt(deps.clock.wallMs()) * 1000n) {
    throw new InvalidRequestError('expires_at: must be in the future.', 'expires_at');
  }
  const added = await store.addServiceKey(userId, { label, expiresAtMicros }, askedWith);
  if (added.kind === 'not-asked')
    throw askedWith === null ? new NotFoundError('No such user.') : new AuthenticationError();
  if (added.kind === 'too-many') {
    const message = `A user may have at most ${added.most} service keys; delete one first.`;
    throw new InvalidRequestError(message, null, 'too_many_service_keys');
  }
  deps.httpTelemetry.audited({ audit: 'service_key_added', userId, keyId: added.row.id }, asker);
  return added;
}

/** `/v1/service-keys`: what the caller's programs authenticate with (docs/decisions/0016). */
export function serviceKeysHandlers(
  store: ServiceKeyStore,
  deps: ServiceKeysDeps,
): Handlers<'addServiceKey' | 'listServiceKeys' | 'deleteServiceKey'> {
  return {
    async addServiceKey({ body, request }): Promise<RouteAnswer<'addServiceKey'>> {
      const { userId, serviceKeyId } = request.account;
      const { row, apiKey } = await makeServiceKey(store, deps, userId, serviceKeyId, body, askerOf(request));
      return { ...serviceKeyRecord(row, serviceKeyId), api_key: apiKey, shown_once: true };
    },
    async listServiceKeys({ request }) {
      const { userId, serviceKeyId } = request.account;
      const rows = await store.listServiceKeys(userId);
      return rows.map((row) => serviceKeyRecord(row, serviceKeyId));
    },
    async deleteServiceKey({ params, request }) {
      const { userId } = request.account;
      const keyId = params.key_id;
      const deleted = await store.deleteServiceKey(userId, keyId);
      if (deleted === 'unknown') throw noServiceKey();
      if (deleted === 'last') {
        const message =
          'This is the only service key that is live: without it nobody could get in. Make another one first.';
        throw new ConflictError(message, 'key_id', 'last_service_key');
      }
      deps.httpTelemetry.audited({ audit: 'service_key_deleted', userId, keyId }, askerOf(request));
    },
  };
}
