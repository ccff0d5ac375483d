import { ratesFor } from '../answer/cost.ts';
import type { AttemptRow } from '../attempt-record.ts';
import { attemptRow } from '../attempt-record.ts';
import type { CandidateFate } from '../candidate-fate.ts';
import { candidateFate } from '../candidate-fate.ts';
import type { ProviderName } from '../provider-name.ts';
import type { SettledRequest, Target } from '../settled-request.ts';
import type { PricedBy, Rates } from '../tables/price.ts';
import { pricedBy } from '../tables/price.ts';

/** What columns of JSON hold, and the text of each. */

/** What Postgres text and jsonb cannot hold, as JSON writes it: NUL and halves of surrogate pairs. */
const unstorable = /\\u(?:0000|d[89a-f])/;
const nul = /\0/g;

function storable(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed().replace(nul, '\uFFFD') : value;
}

/** Any value as JSON; text that Postgres cannot store is replaced by U+FFFD. */
export function storableJson(value: unknown): string {
  if (value === null) return 'null';
  const text = JSON.stringify(value);
  return unstorable.test(text) ? JSON.stringify(value, storable) : text;
}

/** Text of a form that needs no escaping, as JSON: ids, hashes, names of closed lists. */
export const plainJson = (text: string): string => `"${text}"`;

export type StoredAttempts = readonly AttemptRow[];

export function attemptsJson({ candidates }: SettledRequest): string {
  return storableJson(candidates.map(attemptRow));
}

/** Null for an override, and where an earlier release wrote the row. */
export type StoredFates = readonly (Target & { readonly fate: CandidateFate })[] | null;

/** What fates are written behind, one text for each candidate of a tier: the same for all its requests. */
const beforeFates = new WeakMap<readonly Target[], readonly string[]>();

function beforeFatesOf(tier: readonly Target[]): readonly string[] {
  const known = beforeFates.get(tier);
  if (known !== undefined) return known;
  const made = tier.map(
    ({ provider, model }, index) =>
      `${index === 0 ? '' : '},'}{"provider":${plainJson(provider)},"model":${storableJson(model)},"fate":`,
  );
  beforeFates.set(tier, made);
  return made;
}

/** `[{"provider":"openai","model":"gpt-6","fate":"tried"}]`: the tier in its order, each with what became of it. */
export function fatesJson(settled: SettledRequest): string | null {
  const { tier } = settled;
  if (tier === null) return null;
  const before = beforeFatesOf(tier);
  let text = '[';
  for (let index = 0; index < tier.length; index += 1) {
    text += before[index] + plainJson(candidateFate(tier[index] as Target, settled));
  }
  return tier.length === 0 ? '[]' : `${text}}]`;
}

/** Null where no answer was priced. */
export type StoredPrice = PricedBy | null;

/** Put together once for all that they price. */
const ratesJson = new WeakMap<Rates, string>();

export function priceJson({ price, usage }: SettledRequest): string | null {
  if (price === null) return null;
  const rates = ratesFor(price, usage.inputTokens);
  let json = ratesJson.get(rates);
  if (json === undefined) {
    json = storableJson(pricedBy(price, rates));
    ratesJson.set(rates, json);
  }
  return json;
}

/** Null where nothing was looked for. */
export type StoredCacheUse =
  | { readonly result: 'miss' }
  | {
      readonly result: 'hit';
      readonly provider: ProviderName;
      readonly model: string;
      readonly request_id: string | null;
      readonly trace_id: string | null;
    }
  | null;

export function cacheJson({ cache, cachedFrom }: SettledRequest): string | null {
  if (cachedFrom === null) return cache === 'miss' ? '{"result":"miss"}' : null;
  const { provider, model, requestId, traceId } = cachedFrom;
  const quoted = (id: string | null): string => (id === null ? 'null' : plainJson(id));
  const origin = `"provider":${plainJson(provider)},"model":${storableJson(model)}`;
  return `{"result":"hit",${origin},"request_id":${quoted(requestId)},"trace_id":${quoted(traceId)}}`;
}
