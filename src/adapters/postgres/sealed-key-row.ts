import type { HeldKey } from '../../core/candidate.ts';
import type { ProviderName } from '../../core/provider-name.ts';

/** As much of a stored provider key as it takes to open it. */
export interface SealedKeyRow {
  readonly id: string;
  readonly user_id: string;
  readonly provider: ProviderName;
  readonly declared_region: string | null;
  readonly base_url: string | null;
  readonly seal_version: number;
  readonly master_key_id: string;
  readonly nonce: Buffer;
  readonly ciphertext: Buffer;
}

export const sealedKeyColumns =
  'id, user_id, provider, declared_region, base_url, seal_version, master_key_id, nonce, ciphertext';

export function heldKeyOf(row: SealedKeyRow): HeldKey {
  return {
    id: row.id,
    userId: row.user_id,
    provider: row.provider,
    declaredRegion: row.declared_region,
    baseUrl: row.base_url,
    label: null,
    createdAtMs: 0,
    sealed: {
      version: row.seal_version,
      masterKeyId: row.master_key_id,
      nonce: row.nonce,
      ciphertext: row.ciphertext,
    },
  };
}
