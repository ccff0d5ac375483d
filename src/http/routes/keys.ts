import type { FastifyInstance } from 'fastify';
import type { RegisterKeyBody } from '../../core/account-requests.ts';
import { registerKeySchema } from '../../core/account-requests.ts';
import { InvalidRequestError } from '../../core/errors.ts';
import type { NewProviderKey } from '../../core/new-provider-key.ts';
import { checkProviderKey } from '../../core/new-provider-key.ts';
import type { ProviderKeyRow } from '../../core/provider-key-record.ts';
import { providerKeyRecord } from '../../core/provider-key-record.ts';
import type { ProviderName } from '../../core/provider-name.ts';
import type { RoutingTables } from '../../core/tables.ts';
import type { HttpTelemetry } from '../http-telemetry.ts';
import { askerOf } from '../http-telemetry.ts';
import { parseOrThrow } from '../parse.ts';

export interface KeysDeps {
  readonly tables: () => RoutingTables;
  readonly addProviderKey: (userId: string, key: NewProviderKey) => Promise<ProviderKeyRow>;
  readonly listProviderKeys: (userId: string) => Promise<readonly ProviderKeyRow[]>;
  /** The key's provider. Throws NotFoundError for a key that is not the caller's. */
  readonly deleteProviderKey: (userId: string, keyId: string) => Promise<ProviderName>;
  readonly httpTelemetry: Pick<HttpTelemetry, 'audited'>;
}

/** Throws InvalidRequestError for fields that do not go with the provider. */
function checkedKey(body: RegisterKeyBody): NewProviderKey {
  const checked = checkProviderKey(body);
  if (checked.ok) return checked.key;
  throw new InvalidRequestError(checked.message, checked.field);
}

/** `/v1/keys` (SPEC 4.2-4.4). Secrets go in and never come out. */
export function keysRoutes(app: FastifyInstance, deps: KeysDeps): void {
  app.post('/v1/keys', async (request, reply) => {
    const key = checkedKey(parseOrThrow(registerKeySchema, request.body));
    const { userId } = request.account;
    const row = await deps.addProviderKey(userId, key);
    const added = { audit: 'key_added', userId, keyId: row.id, provider: row.provider } as const;
    deps.httpTelemetry.audited(added, askerOf(request));
    reply.code(201);
    return providerKeyRecord(row, deps.tables().indiaRegions);
  });
  app.get('/v1/keys', async (request) => {
    const rows = await deps.listProviderKeys(request.account.userId);
    return rows.map((row) => providerKeyRecord(row, deps.tables().indiaRegions));
  });
  app.delete<{ Params: { key_id: string } }>('/v1/keys/:key_id', async (request, reply) => {
    const { userId } = request.account;
    // As it is stored: the path may spell it in capitals.
    const keyId = request.params.key_id.toLowerCase();
    const provider = await deps.deleteProviderKey(userId, keyId);
    deps.httpTelemetry.audited({ audit: 'key_deleted', userId, keyId, provider }, askerOf(request));
    return reply.code(204).send();
  });
}
