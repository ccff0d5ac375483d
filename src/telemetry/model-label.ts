import { otherName } from '../core/other-name.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { RoutingTables } from '../core/tables/tables.ts';

/**
 * A model as a label value: by its name where the tables that its request began with have it. An override may name
 * anything, a metric may not.
 */
export function modelLabel(tables: RoutingTables, provider: ProviderName, model: string): string {
  return tables.names(provider, model) ? model : otherName;
}
