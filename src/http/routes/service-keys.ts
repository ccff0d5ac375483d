import type { z } from 'zod';
import type {
  AddedServiceKey,
  DeletedServiceKey,
  NewServiceKey,
  ServiceKeyRow,
} from '../../adapters/postgres/service-keys.ts';
import type { Clock } from '../../chat/ports.ts';
import type { newServiceKeySchema } from '../../core/account/account-requests.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../../core/errors.ts';
import type { ServiceKeyRecord } from '../answer-schemas.ts';
import type { Asker, HttpTelemetry } from '../http-telemetry.ts';
import { askerOf } from '../http-telemetry.ts';
import type { Answer, Handlers } from '../mount.ts';
import { serviceKeyFacts } from '../operator-records.ts';

export interface ServiceKeysDeps {
  readonly addServiceKey: (userId: string, key: NewServiceKey) => Promise<AddedServiceKey>;
  readonly listServiceKeys: (userId: string) => Promise<readonly ServiceKeyRow[]>;
  readonly deleteServiceKey: (userId: string, keyId: string) => Promise<DeletedServiceKey>;
  readonly clock: Pick<Clock, 'wallMs'>;
  readonly httpTelemetry: Pick<HttpTelemetry, 'audited'>;
}

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
 * key too many, NotFoundError for a user who is gone.
 */
export async function makeServiceKey(
  deps: Omit<ServiceKeysDeps, 'listServiceKeys' | 'deleteServiceKey'>,
  userId: string,
  { label = null, expires_at: expiresAtMicros = null }: z.output<typeof newServiceKeySchema>,
  asker: Asker,
): Promise<MadeServiceKey> {
  if (expiresAtMicros !== null && expiresAtMicros <= BigInt(deps.clock.wallMs()) * 1000n) {
    throw new InvalidRequestError('expires_at: must be in the future.', 'expires_at');
  }
  const added = await deps.addServiceKey(userId, { label, expiresAtMicros });
  if (added.kind === 'no-user') throw new NotFoundError('No such user.');
  if (added.kind === 'too-many') {
    const message = `A user may have at most ${added.most} service keys; delete one first.`;
    throw new InvalidRequestError(message, null, 'too_many_service_keys');
  }
  deps.httpTelemetry.audited({ audit: 'service_key_added', userId, keyId: added.row.id }, asker);
  return added;
}

/** `/v1/service-keys`: what the caller's programs authenticate with (docs/decisions/0016). */
export function serviceKeysHandlers(
  deps: ServiceKeysDeps,
): Handlers<'addServiceKey' | 'listServiceKeys' | 'deleteServiceKey'> {
  return {
    async addServiceKey({ body, request }): Promise<Answer<'addServiceKey'>> {
      const { userId, serviceKeyId } = request.account;
      const { row, apiKey } = await makeServiceKey(deps, userId, body, askerOf(request));
      return { ...serviceKeyRecord(row, serviceKeyId), api_key: apiKey, shown_once: true };
    },
    async listServiceKeys({ request }) {
      const { userId, serviceKeyId } = request.account;
      const rows = await deps.listServiceKeys(userId);
      return rows.map((row) => serviceKeyRecord(row, serviceKeyId));
    },
    async deleteServiceKey({ param, request }) {
      const { userId } = request.account;
      // As it is stored: the path may spell it in capitals.
      const keyId = param.toLowerCase();
      const deleted = await deps.deleteServiceKey(userId, keyId);
      if (deleted === 'unknown') throw new NotFoundError('No such service key.');
      if (deleted === 'last') {
        const message =
          'This is the only service key that is live: without it nobody could get in. Make another one first.';
        throw new ConflictError(message, 'key_id', 'last_service_key');
      }
      deps.httpTelemetry.audited({ audit: 'service_key_deleted', userId, keyId }, askerOf(request));
    },
  };
}
