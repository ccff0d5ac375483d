import { createHash } from 'node:crypto';
import type { Accounts, Caller } from '../../chat/ports.ts';
import { maxMountedKeys } from '../../core/account/mounted-keys.ts';
import type { NewProviderKey } from '../../core/account/new-provider-key.ts';
import type { HeldKey } from '../../core/candidate.ts';
import type { Sealer } from '../system/sealer.ts';

/** The one user of a sidecar; the same in every replica, so that rows can be told together. */
const sidecarUserId = '00000000-0000-4000-8000-000000000001';

/** A stable id from the key's place in the file: overrides may name it, and restarts do not change it. */
function keyId(index: number): string {
  const digest = createHash('sha256').update(`sidecar key ${index}`).digest('hex');
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-4${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}

function sealed({ apiKey, label, ...fields }: NewProviderKey, index: number, sealer: Sealer): HeldKey {
  const binding = { id: keyId(index), userId: sidecarUserId, ...fields };
  return { ...binding, label, createdAtMs: index, sealed: sealer.seal(apiKey.reveal(), binding) };
}

/** The account of a gateway beside one application: who has the one service key holds all keys, which are sealed. */
export function onlyAccount(
  serviceKeyHash: string,
  providerKeys: readonly NewProviderKey[],
  sealer: Sealer,
): Accounts {
  const account: Caller = {
    userId: sidecarUserId,
    keys: providerKeys.map((key, index) => sealed(key, index, sealer)),
    serviceKeyId: keyId(maxMountedKeys),
    disabled: false,
    residency: null,
    limits: null,
    readAtMs: 0,
  };
  const find = (keyHash: string): Caller | null => (keyHash === serviceKeyHash ? account : null);
  return {
    find,
    remembers: (keyHash) => keyHash === serviceKeyHash,
    isRevoked: () => false,
    refresh: async (keyHash) => find(keyHash),
  };
}
