import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { MemoryResponseCache } from '../adapters/cache/memory-cache.ts';
import { encodeLogRow } from '../adapters/postgres/encode-log-rows.ts';
import type { RequestLogStats } from '../adapters/postgres/request-log-contract.ts';
import type { Sealer } from '../adapters/system/sealer.ts';
import type { Accounts, Caller } from '../chat/ports.ts';
import { registerKeySchema } from '../core/account/account-requests.ts';
import { checkProviderKey } from '../core/account/new-provider-key.ts';
import { hashServiceKey, hasServiceKeyShape } from '../core/account/service-key.ts';
import type { HeldKey } from '../core/candidate.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { Settings } from '../settings.ts';
import { SettingsError } from '../settings.ts';
import type { StdoutLines } from '../telemetry/stdout-lines.ts';
import type { Stores } from './stores.ts';
import { maxCacheValueBytes } from './stores.ts';

/** More keys than one application has providers. */
const maxKeys = 100;

/** The one user of a sidecar; the same in every replica, so that rows can be told together. */
const sidecarUserId = '00000000-0000-4000-8000-000000000001';

const keysFileSchema = z.array(registerKeySchema).min(1).max(maxKeys);

/** A stable id from the key's place in the file: overrides may name it, and restarts do not change it. */
function keyId(index: number): string {
  const digest = createHash('sha256').update(`sidecar key ${index}`).digest('hex');
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-4${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}

/** Keys of a mounted Secret (`GW_PROVIDER_KEYS_FILE`), as the API takes them, sealed at once. Throws SettingsError. */
function readProviderKeys(path: string, sealer: Sealer): HeldKey[] {
  let document: unknown;
  try {
    document = parseYaml(readFileSync(path, 'utf8'));
  } catch {
    // Nothing of the file's content may reach a log: it holds keys.
    throw new SettingsError(`GW_PROVIDER_KEYS_FILE: ${path} cannot be read, or is not YAML or JSON.`);
  }
  const parsed = keysFileSchema.safeParse(document);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new SettingsError(
      `GW_PROVIDER_KEYS_FILE: ${issue?.path.join('.') || 'the document'}: ${issue?.message}`,
    );
  }
  const providers = new Set<ProviderName>();
  return parsed.data.map((entry, index) => {
    const refuse = (field: string, message: string): never => {
      throw new SettingsError(`GW_PROVIDER_KEYS_FILE: ${index}.${field}: ${message}`);
    };
    const checked = checkProviderKey(entry);
    if (!checked.ok) return refuse(checked.field, checked.message);
    const { provider, apiKey, baseUrl, declaredRegion, label } = checked.key;
    // A mode and an override would each take another one of them.
    if (provider !== 'self_hosted' && providers.has(provider)) {
      return refuse('provider', `A key for ${provider} is already in the file.`);
    }
    providers.add(provider);
    const binding = { id: keyId(index), userId: sidecarUserId, provider, declaredRegion, baseUrl };
    return { ...binding, label, createdAtMs: index, sealed: sealer.seal(apiKey.reveal(), binding) };
  });
}

function onlyAccount(settings: Settings, sealer: Sealer): Accounts {
  if (settings.serviceKey === null || settings.providerKeysFile === null) {
    throw new SettingsError(
      'GW_PROFILE=sidecar without DATABASE_URL needs GW_SERVICE_KEY and GW_PROVIDER_KEYS_FILE.',
    );
  }
  const serviceKey = settings.serviceKey.reveal();
  if (hasServiceKeyShape(serviceKey, null) === null) {
    throw new SettingsError('GW_SERVICE_KEY is not a service key; make one with "model-gateway new-key".');
  }
  const hash = hashServiceKey(serviceKey);
  const keys = readProviderKeys(settings.providerKeysFile, sealer);
  const account: Caller = {
    userId: sidecarUserId,
    keys,
    serviceKeyId: keyId(maxKeys),
    disabled: false,
    residency: null,
    limits: null,
    readAtMs: 0,
  };
  const find = (keyHash: string): Caller | null => (keyHash === hash ? account : null);
  return {
    find,
    remembers: (keyHash) => keyHash === hash,
    isRevoked: () => false,
    refresh: async (keyHash) => find(keyHash),
  };
}

type Lines = Pick<StdoutLines, 'write' | 'flush'>;

/**
 * The stores of a gateway that runs beside one application and has no database: one service key and the
 * provider keys from mounted files, answers cached in memory, rows as NDJSON on stdout. There is no place behind that
 * one: rows that come while nobody reads it are dropped, and are gone.
 */
export function openSidecarStores(settings: Settings, sealer: Sealer, lines: Lines): Stores {
  const accounts = onlyAccount(settings, sealer);
  let written = 0;
  let dropped = 0;
  return {
    accounts: { ...accounts, invalidate: () => undefined, revoke: () => undefined },
    database: null,
    requestLog: {
      async record(row) {
        if (lines.write(`${encodeLogRow(row)}\n`)) written += 1;
        else dropped += 1;
        lines.flush();
      },
      accepting: () => true,
      stats: (): RequestLogStats => ({
        accepted: written + dropped,
        written,
        spooled: 0,
        dropped,
        replayed: 0,
        bad: 0,
        printed: 0,
        queueDepth: 0,
        spoolBytes: 0,
        oldestRowAgeMs: 0,
        away: false,
      }),
    },
    storeState: () => ({ ready: true, reason: null }),
    answers: new MemoryResponseCache(settings.cacheMemoryBytes, maxCacheValueBytes),
    registrations: null,
    keyChecks: null,
    sharedLimits: null,
    readSpent: null,
    cacheStats: null,
    close: async () => undefined,
  };
}
