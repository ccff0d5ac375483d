import { otherName } from '../core/other-name.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { RoutingTables } from '../core/tables/tables.ts';

/**
 * Model names that may be label values: those of the tables a request began with. An override may name anything, a
 * metric may not.
 */
export class ModelLabels {
  of(tables: RoutingTables, provider: ProviderName, model: string): string {
    return tables.names(provider, model) ? model : otherName;
  }
}
