import type { FastifyInstance } from 'fastify';
import type { NewProviderKey } from '../../adapters/postgres/provider-keys.ts';
import type { RegisterKeyBody } from '../../core/account-requests.ts';
import { canBeNamed, registerKeySchema } from '../../core/account-requests.ts';
import { InvalidRequestError } from '../../core/errors.ts';
import type { ProviderKeyRow } from '../../core/provider-key-record.ts';
import { providerKeyRecord } from '../../core/provider-key-record.ts';
import type { ProviderName } from '../../core/provider-name.ts';
import { Secret } from '../../core/secret.ts';
import { parseSelfHostedUrl } from '../../core/self-hosted-url.ts';
import type { RoutingTables } from '../../core/tables.ts';
import type { HttpTelemetry } from '../http-telemetry.ts';
import { askerOf } from '../http-telemetry.ts';
import { parseOrThrow } from '../parse.ts';

export interface KeysIo {
  readonly tables: () => RoutingTables;
  readonly addProviderKey: (userId: string, key: NewProviderKey) => Promise<ProviderKeyRow>;
  readonly listProviderKeys: (userId: string) => Promise<readonly ProviderKeyRow[]>;
  /** The key's provider. Throws NotFoundError for a key that is not the caller's. */
  readonly deleteProviderKey: (userId: string, keyId: string) => Promise<ProviderName>;
  readonly httpTelemetry: Pick<HttpTelemetry, 'audited'>;
}

/** Which fields go with which provider (SPEC 4.2); `base_url` comes out normalised. */
function checkedKey(body: RegisterKeyBody): NewProviderKey {
  const { provider, base_url: baseUrl, declared_region: region } = body;
  const shared = { provider, apiKey: new Secret(body.api_key), label: body.label ?? null };
  if (provider !== 'self_hosted') {
    for (const name of ['base_url', 'declared_region'] as const) {
      if (body[name] != null) throw new InvalidRequestError(`${name} may be set for self_hosted only.`, name);
    }
    return { ...shared, baseUrl: null, declaredRegion: null };
  }
  if (baseUrl == null) throw new InvalidRequestError('base_url is required for self_hosted.', 'base_url');
  if (region == null) {
    throw new InvalidRequestError('declared_region is required for self_hosted.', 'declared_region');
  }
  // Of vendors' keys there is one each, so that their labels are hints to people only.
  if (shared.label !== null && !canBeNamed(shared.label)) {
    throw new InvalidRequestError(
      'label may not be blank nor hold "/" or ":": an override names a self_hosted key by it.',
      'label',
    );
  }
  const parsed = parseSelfHostedUrl(baseUrl);
  if (!parsed.ok) throw new InvalidRequestError(`base_url ${parsed.message}`, 'base_url');
  return { ...shared, baseUrl: parsed.url, declaredRegion: region };
}

/** `/v1/keys` (SPEC 4.2-4.4). Secrets go in and never come out. */
export function keysRoutes(app: FastifyInstance, io: KeysIo): void {
  app.post('/v1/keys', async (request, reply) => {
    const key = checkedKey(parseOrThrow(registerKeySchema, request.body));
    const { userId } = request.account;
    const row = await io.addProviderKey(userId, key);
    const added = { audit: 'key_added', userId, keyId: row.id, provider: row.provider } as const;
    io.httpTelemetry.audited(added, askerOf(request));
    reply.code(201);
    return providerKeyRecord(row, io.tables().indiaRegions);
  });
  app.get('/v1/keys', async (request) => {
    const rows = await io.listProviderKeys(request.account.userId);
    return rows.map((row) => providerKeyRecord(row, io.tables().indiaRegions));
  });
  app.delete<{ Params: { key_id: string } }>('/v1/keys/:key_id', async (request, reply) => {
    const { userId } = request.account;
    // As it is stored: the path may spell it in capitals.
    const keyId = request.params.key_id.toLowerCase();
    const provider = await io.deleteProviderKey(userId, keyId);
    io.httpTelemetry.audited({ audit: 'key_deleted', userId, keyId, provider }, askerOf(request));
    return reply.code(204).send();
  });
}
