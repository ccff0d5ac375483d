import { ratesFor } from '../answer/cost.ts';
import type { AttemptRecord, AttemptRow, ServedFacts } from '../attempt-record.ts';
import { attemptRow, isSameServed, servedFacts, servedRow, shownLatency } from '../attempt-record.ts';
import type { CandidateFate } from '../candidate-fate.ts';
import { candidateFate } from '../candidate-fate.ts';
import type { ProviderName } from '../provider-name.ts';
import type { SettledRequest, Target } from '../settled-request.ts';
import type { ModelFacts } from '../tables/model-facts.ts';
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

/** The text of an attempt that served and left nothing out, around its latency. */
interface ServedText {
  readonly facts: ServedFacts;
  readonly before: string;
  readonly after: string;
}

/** Of the attempt before at each model: nearly every request has one such attempt, which takes 0.4 µs to write anew. */
const servedTexts = new WeakMap<ModelFacts, ServedText>();

/** Made of the facts that are compared and of nothing else, so that no request is told of by another's text. */
function madeServedText(facts: ServedFacts): ServedText {
  const text = storableJson([servedRow(facts, 0)]);
  const [before = '', after = ''] = text.split(/(?<="latency_ms":)0(?=,"end")/);
  return { facts, before, after };
}

function servedTextOf(record: AttemptRecord): ServedText {
  const { facts: model } = record.candidate;
  const known = servedTexts.get(model);
  if (known !== undefined && isSameServed(known.facts, servedFacts(record))) return known;
  // Facts that are only compared need no object; these are kept, in one of their own.
  const made = madeServedText(servedFacts(record));
  servedTexts.set(model, made);
  return made;
}

export function attemptsJson({ candidates }: SettledRequest): string {
  const [record] = candidates;
  if (
    candidates.length !== 1 ||
    record?.kind !== 'tried' ||
    record.end.kind !== 'served' ||
    record.dropped.length > 0
  )
    return storableJson(candidates.map(attemptRow));
  const { before, after } = servedTextOf(record);
  return before + shownLatency(record) + after;
}

/** Null for an override, and where an earlier release wrote the row. */
export type StoredFates = readonly (Target & { readonly fate: CandidateFate })[] | null;

/** The fates that a tier's candidates had in the request before, and how they were written: nearly always the same. */
interface FatesText {
  readonly fates: CandidateFate[];
  text: string;
}

const fatesTexts = new WeakMap<readonly Target[], FatesText>();

/** `[{"provider":"openai","model":"gpt-6","fate":"tried"}]`: the tier in its order, each with what became of it. */
export function fatesJson(settled: SettledRequest): string | null {
  const { tier } = settled;
  if (tier === null) return null;
  let known = fatesTexts.get(tier);
  if (known === undefined) {
    known = { fates: [], text: '[]' };
    fatesTexts.set(tier, known);
  }
  const { fates } = known;
  let isSame = true;
  for (let index = 0; index < tier.length; index += 1) {
    const fate = candidateFate(tier[index] as Target, settled);
    if (fates[index] === fate) continue;
    fates[index] = fate;
    isSame = false;
  }
  if (!isSame)
    known.text = storableJson(
      tier.map(({ provider, model }, index) => ({ provider, model, fate: fates[index] })),
    );
  return known.text;
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
