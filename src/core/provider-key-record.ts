import type { ProviderName } from './provider-name.ts';
import type { Residency } from './residency.ts';
import { residencyOf } from './residency.ts';
import { formatTimestampMicros } from './timestamp.ts';

/** A stored key without its secret. */
export interface ProviderKeyRow {
  readonly id: string;
  readonly provider: ProviderName;
  readonly declaredRegion: string | null;
  readonly baseUrl: string | null;
  readonly label: string | null;
  readonly createdAtMicros: number;
}

/** The response shape of SPEC 2.2. */
export interface ProviderKeyRecord {
  readonly id: string;
  readonly provider: ProviderName;
  readonly residency: Residency;
  readonly declared_region: string | null;
  readonly base_url: string | null;
  readonly label: string | null;
  readonly created_at: string;
}

/** The public record of a stored key; `indiaRegions` are those of the current tables. */
export function providerKeyRecord(row: ProviderKeyRow, indiaRegions: ReadonlySet<string>): ProviderKeyRecord {
  return {
    id: row.id,
    provider: row.provider,
    residency: residencyOf(row.provider, row.declaredRegion, indiaRegions),
    declared_region: row.declaredRegion,
    base_url: row.baseUrl,
    label: row.label,
    created_at: formatTimestampMicros(row.createdAtMicros),
  };
}
