import { MemoryResponseCache } from '../adapters/cache/memory-cache.ts';
import { readMountedKeysFile } from '../adapters/sidecar/mounted-keys-file.ts';
import { onlyAccount } from '../adapters/sidecar/only-account.ts';
import type { Lines } from '../adapters/sidecar/row-lines.ts';
import { RowLines } from '../adapters/sidecar/row-lines.ts';
import type { Sealer } from '../adapters/system/sealer.ts';
import type { Accounts } from '../chat/ports.ts';
import { hashServiceKey, hasServiceKeyShape } from '../core/account/service-key.ts';
import type { Settings } from '../settings.ts';
import { SettingsError } from '../settings.ts';
import type { Stores, StoresIo } from './stores.ts';
import { maxCacheValueBytes } from './stores.ts';

/** The account that the settings describe. Throws SettingsError. */
function accountOf(settings: Settings, sealer: Sealer): Accounts {
  if (settings.serviceKey === null || settings.providerKeysFile === null) {
    throw new SettingsError(
      'GW_PROFILE=sidecar without DATABASE_URL needs GW_SERVICE_KEY and GW_PROVIDER_KEYS_FILE.',
    );
  }
  const serviceKey = settings.serviceKey.reveal();
  if (hasServiceKeyShape(serviceKey, null) === null) {
    throw new SettingsError('GW_SERVICE_KEY is not a service key; make one with "model-gateway new-key".');
  }
  const mounted = readMountedKeysFile(settings.providerKeysFile);
  if (!mounted.ok) throw new SettingsError(`GW_PROVIDER_KEYS_FILE: ${mounted.message}`);
  return onlyAccount(hashServiceKey(serviceKey), mounted.keys, sealer);
}

/**
 * The stores of a gateway that runs beside one application and has no database: one service key and the
 * provider keys from mounted files, answers cached in memory, rows as NDJSON on stdout. There is no place behind that
 * one: rows that come while nobody reads it are dropped, and are gone.
 */
export function openSidecarStores(
  settings: Settings,
  sealer: Sealer,
  lines: Lines,
  onKept: StoresIo['onKept'],
): Stores {
  return {
    accounts: { ...accountOf(settings, sealer), invalidate: () => undefined, revoke: () => undefined },
    database: null,
    requestLog: new RowLines(lines, onKept),
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
