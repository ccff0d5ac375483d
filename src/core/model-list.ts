import type { HeldKey } from './candidate.ts';
import { modes, tierNames } from './mode.ts';
import type { RoutingTables } from './tables.ts';

/** One entry of OpenAI's model list. */
export interface ModelEntry {
  readonly id: string;
  readonly object: 'model';
  /** Unix seconds. */
  readonly created: number;
  readonly owned_by: string;
}

/** Modes have no birthday of their own; the clients' types want a number. */
const modeCreated = 0;

/**
 * `GET /v1/models`: the three modes, then the override targets (`provider:model`) that the caller's keys
 * reach among the models the tables know. What a self_hosted server offers is known to that server only.
 */
export function listModels(keys: readonly HeldKey[], tables: RoutingTables): ModelEntry[] {
  const entries: ModelEntry[] = modes.map((id) => ({
    id,
    object: 'model',
    created: modeCreated,
    owned_by: 'model-gateway',
  }));
  const known = [...tierNames.flatMap((name) => tables.tier(name)), ...tables.document.prices];
  const seen = new Set<string>();
  for (const key of keys) {
    for (const { provider, model } of known) {
      const id = `${provider}:${model}`;
      if (provider !== key.provider || seen.has(id)) continue;
      seen.add(id);
      entries.push({ id, object: 'model', created: Math.floor(key.createdAtMs / 1000), owned_by: provider });
    }
  }
  return entries;
}
