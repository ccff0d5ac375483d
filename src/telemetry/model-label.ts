import { tierNames } from '../core/mode.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { RoutingTables } from '../core/tables.ts';

/** A label value for models no table knows: an override may name anything, a metric may not. */
export const otherModel = '_other';

type Names = ReadonlyMap<ProviderName, ReadonlySet<string>>;

function namesOf(tables: RoutingTables): Names {
  const names = new Map<ProviderName, Set<string>>();
  const rows = [...tierNames.flatMap((name) => tables.tier(name)), ...tables.document.prices];
  for (const { provider, model } of rows) {
    names.set(provider, (names.get(provider) ?? new Set<string>()).add(model));
  }
  return names;
}

/** Model names that may be label values: those of the tables a request began with. */
export class ModelLabels {
  #tables: RoutingTables | null = null;
  #names: Names = new Map();

  of(tables: RoutingTables, provider: ProviderName, model: string): string {
    if (this.#tables !== tables) {
      this.#names = namesOf(tables);
      this.#tables = tables;
    }
    return this.#names.get(provider)?.has(model) === true ? model : otherModel;
  }
}
