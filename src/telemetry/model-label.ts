import type { ProviderName } from '../core/provider-name.ts';
import type { RoutingTables } from '../core/tables/tables.ts';

/** A label value for models no table knows: an override may name anything, a metric may not. */
export const otherModel = '_other';

/** Model names that may be label values: those of the tables a request began with. */
export class ModelLabels {
  of(tables: RoutingTables, provider: ProviderName, model: string): string {
    return tables.names(provider, model) ? model : otherModel;
  }
}
