import { compileDefaults } from '../limits/user-limits.ts';
import { parseInstant } from '../parse-instant.ts';
import type { ProviderName } from '../provider-name.ts';
import { pricedProviderNames } from '../provider-name.ts';
import type { TierName } from './mode.ts';
import { tierNames } from './mode.ts';
import type { ModelFacts } from './model-facts.ts';
import { resolveFacts } from './model-facts.ts';
import type { Price } from './price.ts';
import { compilePrice, dearestPrice, findPrice } from './price.ts';
import type { RoutingTablesDocument, TierCandidate } from './routing-tables.ts';
import type { RoutingTables } from './tables.ts';

/** Models of override headers are chosen by callers, so what is remembered of them has a bound. */
const maxRemembered = 4096;

/** Remembers answers by provider and model; forgets all of them when full, which real use never reaches. */
function remembered<Value>(find: (provider: ProviderName, model: string) => Value) {
  const known = new Map<ProviderName, Map<string, Value>>();
  let count = 0;
  return (provider: ProviderName, model: string): Value => {
    const hit = known.get(provider)?.get(model);
    if (hit !== undefined) return hit;
    if (count >= maxRemembered) {
      known.clear();
      count = 0;
    }
    const value = find(provider, model);
    known.set(provider, (known.get(provider) ?? new Map<string, Value>()).set(model, value));
    count += 1;
    return value;
  };
}

/** Throws for a text that no validated document holds: a sunset in the past would end the surface in silence. */
function sunsetOf(text: string): number {
  const sunsetMs = parseInstant(text);
  if (sunsetMs === null) throw new RangeError('legacy.sunset is no instant');
  return sunsetMs;
}

/**
 * Makes the tables that requests hold out of a validated document. `hash` is the first 16 hex digits of its
 * SHA-256; `generation` counts the successful loads of this process.
 */
export function compileTables(
  document: RoutingTablesDocument,
  hash: string,
  generation: number,
): RoutingTables {
  const prices = document.prices.map(compilePrice);
  const dearest = new Map(
    pricedProviderNames.map((name) => [name as ProviderName, dearestPrice(prices, name)]),
  );
  const { legacy } = document;
  const named = [...tierNames.flatMap((name) => document.tiers[name]), ...document.prices];
  const modelsOf = new Map<ProviderName, Set<string>>();
  for (const { provider, model } of named) {
    modelsOf.set(provider, (modelsOf.get(provider) ?? new Set<string>()).add(model));
  }
  return Object.freeze<RoutingTables>({
    document,
    hash,
    generation,
    indiaRegions: new Set(document.residency.india_regions.map((region) => region.trim().toLowerCase())),
    residency: document.residency.policy === 'india' ? 'india' : null,
    userLimits: compileDefaults(document.limits),
    legacy: legacy === undefined ? null : { name: legacy.name, sunsetMs: sunsetOf(legacy.sunset) },
    named,
    names: (provider, model) => modelsOf.get(provider)?.has(model) === true,
    tier: (name: TierName): readonly TierCandidate[] => document.tiers[name],
    facts: remembered<ModelFacts>((provider, model) => resolveFacts(document.models, provider, model)),
    price: remembered<Price | null>((provider, model) => findPrice(prices, provider, model)),
    dearest: (provider) => dearest.get(provider) ?? null,
  });
}
