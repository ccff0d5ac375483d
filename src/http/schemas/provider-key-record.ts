import type { ProviderKeyRow } from '../../adapters/postgres/provider-keys.ts';
import { residencyOf } from '../../core/request/residency.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import type { ProviderKeyRecord } from './answer-schemas.ts';

/** A stored key as the API shows it (SPEC 2.2); `indiaRegions` are those of the current tables. */
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
