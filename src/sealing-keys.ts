import { randomBytes } from 'node:crypto';
import type { SealingKey } from './core/secret/sealing-key.ts';
import type { Settings } from './settings.ts';
import { SettingsError } from './settings.ts';

/**
 * The configured keys. Only a sidecar without a database may do without: what it seals never leaves its
 * memory. Throws SettingsError where something is missing.
 */
export function sealingKeys(settings: Settings): readonly SealingKey[] {
  const inMemory = settings.profile === 'sidecar' && settings.databaseUrl === null;
  if (inMemory) return [{ id: 'memory', key: randomBytes(32) }];
  if (settings.databaseUrl === null) {
    throw new SettingsError('DATABASE_URL is not set. (For a trial without a database: npm start.)');
  }
  if (settings.sealingKeys.length > 0) return settings.sealingKeys;
  throw new SettingsError(
    'GW_SEALING_KEYS is not set: kid:base64(32 bytes), for instance v1:$(openssl rand -base64 32).',
  );
}
