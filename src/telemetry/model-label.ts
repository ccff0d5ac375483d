import { tierNames } from '../core/mode.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { RoutingTables } from '../core/tables.ts';

/** A label value for models no table knows: an override may name anything, a metric may not. */
export const otherModel = '_other';

function namesOf(tables: RoutingTables): ReadonlySet<string> {
  const rows = [...tierNames.flatMap((name) => tables.tier(name)), ...tables.document.prices];
  return new Set(rows.map(({ provider, model }) => `${provider} ${model}`));
}

/** Model names that may be label values: those of the tables a request began with. */
export class ModelLabels {
  #tables: RoutingTables | null = null;
  #names: ReadonlySet<string> = new Set();

  of(tables: RoutingTables, provider: ProviderName, model: string): string {
    if (this.#tables !== tables) {
      this.#names = namesOf(tables);
      this.#tables = tables;
    }
    return this.#names.has(`${provider} ${model}`) ? model : otherModel;
  }
}
