import { canBeNamed } from '../account/account-requests.ts';
import type { HeldKey } from '../candidate.ts';
import { overrideKey } from '../override-key.ts';
import { isUserServer } from '../provider-name.ts';
import { modes } from './mode.ts';
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

/** `GET /v1/models`: what can be sent as `model`. Clients offer every entry of the list for choice. */
export const modelEntries: readonly ModelEntry[] = modes.map((id) => ({
  id,
  object: 'model',
  created: modeCreated,
  owned_by: 'model-gateway',
}));

/** What `X-Gateway-Override-Model` may be set to; in the shape of a model, but none that can be asked for as one. */
export interface OverrideTarget extends Omit<ModelEntry, 'object'> {
  readonly object: 'override_target';
}

/** What a user's server offers is known to that server only. */
const anyModel = '*';

/**
 * Override targets that the caller's keys reach: `provider:model` of what the tables know, and
 * `<provider>/<label or key id>:*` of each own server, where `*` stands for a model of that server.
 */
export function overrideTargets(keys: readonly HeldKey[], tables: RoutingTables): OverrideTarget[] {
  const targets = new Map<string, OverrideTarget>();
  const add = (id: string, key: HeldKey): void => {
    const created = Math.floor(key.createdAtMs / 1000);
    if (!targets.has(id)) targets.set(id, { id, object: 'override_target', created, owned_by: key.provider });
  };
  for (const key of keys) {
    for (const { provider, model } of tables.named)
      if (provider === key.provider) add(`${provider}:${model}`, key);
    if (isUserServer(key.provider)) add(`${key.provider}/${nameOf(key, keys)}:${anyModel}`, key);
  }
  return [...targets.values()];
}

/** A key's label where an override by that label reaches it, else its id. */
function nameOf(key: HeldKey, keys: readonly HeldKey[]): string {
  const { label } = key;
  if (label === null || !canBeNamed(label)) return key.id;
  return overrideKey({ provider: key.provider, selector: label }, keys) === key ? label : key.id;
}
