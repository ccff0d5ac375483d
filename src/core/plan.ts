import type { Candidate, HeldKey } from './candidate.ts';
import type { Feature, FeatureNeed, RequestNeeds } from './capability.ts';
import { featureText, lengthNeed, missingFeature, missingFeatures } from './capability.ts';
import type { GatewayError } from './errors.ts';
import { InvalidRequestError, ResidencyError } from './errors.ts';
import { overrideKey } from './override-key.ts';
import type { ProviderName } from './provider-name.ts';
import { providerTraits } from './provider-name.ts';
import type { ChatCall, Override, PlanInput } from './request/chat-call.ts';
import { needsOf } from './request/request-needs.ts';
import type { Residency } from './request/residency.ts';
import { residencyAllows, residencyOf } from './request/residency.ts';

export const skipReasons = ['no_key', 'residency', 'capability', 'cooldown'] as const;
export type SkipReason = (typeof skipReasons)[number];

interface Skip {
  readonly provider: ProviderName;
  readonly model: string;
}

/** A candidate that cannot do what the request asks for: never tried, whatever becomes of the others. */
export interface UnableCandidate extends Skip {
  readonly reason: 'capability';
  /** What it lacks. */
  readonly detail: Feature;
  /** Its place in the order: before the candidate of this index. */
  readonly before: number;
}

/** A candidate that was passed over or moved back, and why. */
export type SkippedCandidate =
  | UnableCandidate
  | (Skip & { readonly reason: Exclude<SkipReason, 'capability'>; readonly detail: string | null });

export interface PlannedCandidates {
  readonly kind: 'planned';
  /** In the order in which they are tried. */
  readonly candidates: readonly Candidate[];
  /** Those that are unable in the order in which they are passed over. */
  readonly skipped: readonly SkippedCandidate[];
}

export type Plan =
  | PlannedCandidates
  | {
      readonly kind: 'refused';
      readonly error: GatewayError;
      /** Empty for an override: its error says it all. */
      readonly skipped: readonly SkippedCandidate[];
      /** True when a key registered a moment ago on another replica would change the answer. */
      readonly forWantOfKey: boolean;
    };

/**
 * All routing policy: which candidates may serve a call, in which order (SPEC 4.5, routing rules;
 * docs/decisions/0003). Never tries anything itself.
 */
export function planCandidates(call: ChatCall, input: PlanInput): Plan {
  const { override } = call.options;
  return override === null ? planTier(call, input) : planOverride(call, override, input);
}

function candidateOf(call: ChatCall, key: HeldKey, model: string): Candidate {
  return {
    provider: key.provider,
    model,
    key,
    residency: keyResidency(call, key),
    facts: call.tables.facts(key.provider, model),
    price: call.tables.price(key.provider, model),
    assumedPrice: call.tables.dearest(key.provider),
    heldBack: false,
  };
}

function keyResidency(call: ChatCall, key: HeldKey): Residency {
  return residencyOf(key.provider, key.declaredRegion, call.tables.indiaRegions);
}

/** A sidecar without a database has no such route. */
const howToAdd = 'add one with POST /v1/keys, or to the keys file of a sidecar';

function refused(
  error: GatewayError,
  forWantOfKey: boolean,
  skipped: readonly SkippedCandidate[] = [],
): Plan {
  return { kind: 'refused', error, skipped, forWantOfKey };
}

function noKey(text: string, param: string, skipped?: readonly SkippedCandidate[]): Plan {
  return refused(new InvalidRequestError(text, param, 'no_provider_key'), true, skipped);
}

function planTier(call: ChatCall, input: PlanInput): Plan {
  const skipped: SkippedCandidate[] = [];
  const eligible: Candidate[] = [];
  for (const { provider, model } of call.tables.tier(call.tier)) {
    const key = input.keys.find((held) => held.provider === provider);
    if (key === undefined) {
      skipped.push({ provider, model, reason: 'no_key', detail: null });
    } else if (!residencyAllows(call.options.residency, keyResidency(call, key))) {
      skipped.push({ provider, model, reason: 'residency', detail: call.options.residency });
    } else {
      eligible.push(candidateOf(call, key, model));
    }
  }
  if (eligible.length > 0) return orderCandidates(call, eligible, skipped, input);
  if (call.options.residency !== null) {
    const text = `No India-residency provider key is registered for ${call.mode}.`;
    return refused(new ResidencyError(text), true, skipped);
  }
  const text = `No provider key is registered for any candidate of ${call.mode}; ${howToAdd}.`;
  return noKey(text, 'model', skipped);
}

/** The tables' order, but those held back last; those that cannot serve the request stay out of it. */
function orderCandidates(
  call: ChatCall,
  eligible: readonly Candidate[],
  skipped: SkippedCandidate[],
  input: PlanInput,
): Plan {
  const needs = needsOf(call.request);
  const ready: Candidate[] = [];
  const heldBack: Candidate[] = [];
  for (const candidate of eligible) {
    const missing = missingFeature(needs, candidate.facts, input.lacks(candidate));
    const { provider, model } = candidate;
    if (missing !== null) {
      const before = ready.length;
      skipped.push({ provider, model, reason: 'capability', detail: missing.feature, before });
    } else if (input.isHeldBack(candidate)) {
      heldBack.push({ ...candidate, heldBack: true });
      skipped.push({ provider, model, reason: 'cooldown', detail: null });
    } else {
      ready.push(candidate);
    }
  }
  if (ready.length + heldBack.length === 0) {
    const forWantOfKey = skipped.some(({ reason }) => reason === 'no_key');
    const blamed = blamedFeatures(needs, eligible, input);
    return unsupported(blamed, `No candidate of ${call.mode} supports`, forWantOfKey, skipped);
  }
  return { kind: 'planned', candidates: [...ready, ...heldBack], skipped };
}

/**
 * Why nobody can serve a request: the first need that all of them lack, or, where no single one is to blame,
 * the first that each of them lacks.
 */
function blamedFeatures(
  needs: RequestNeeds,
  candidates: readonly Candidate[],
  input: PlanInput,
): readonly FeatureNeed[] {
  const missing = candidates.map((candidate) =>
    missingFeatures(needs, candidate.facts, input.lacks(candidate)),
  );
  const [some = []] = missing;
  const byAll = some.find((need) =>
    missing.every((list) => list.some(({ feature }) => feature === need.feature)),
  );
  if (byAll !== undefined) return [byAll];
  const first = new Set(missing.map(([need]) => need?.feature));
  const blamed = needs.features.filter(({ feature }) => first.delete(feature));
  return first.has('context') ? [...blamed, lengthNeed] : blamed;
}

function unsupported(
  needs: readonly FeatureNeed[],
  subject: string,
  forWantOfKey: boolean,
  skipped?: readonly SkippedCandidate[],
): Plan {
  const names = needs.map(({ feature }) => featureText(feature)).join(', ');
  const text = `${subject} ${needs.length > 1 ? 'all of: ' : ''}${names}.`;
  const error = new InvalidRequestError(text, needs[0]?.param ?? null, 'unsupported_feature');
  return refused(error, forWantOfKey, skipped);
}

function planOverride(call: ChatCall, override: Override, input: PlanInput): Plan {
  const { residency } = call.options;
  const refusedResidency = (): Plan =>
    refused(new ResidencyError(`${override.provider} is not an India-residency target.`), false);
  const fixed = providerTraits[override.provider].residency;
  if (fixed !== 'declared' && !residencyAllows(residency, fixed)) return refusedResidency();
  const key = overrideKey(override, input.keys);
  if (key === undefined) {
    const which =
      override.selector === null ? override.provider : `${override.provider}/${override.selector}`;
    return noKey(`No ${which} key is registered; ${howToAdd}.`, 'X-Gateway-Override-Model');
  }
  if (!residencyAllows(residency, keyResidency(call, key))) return refusedResidency();
  const candidate = candidateOf(call, key, override.model);
  // What the tables say of the model does not count: its vendor's own answer is asked for.
  const lacked = input.lacks(candidate);
  const unsayable = needsOf(call.request).features.find(({ feature }) => lacked.includes(feature));
  if (unsayable !== undefined) {
    return unsupported([unsayable], `${override.provider}:${override.model} does not support`, false);
  }
  return { kind: 'planned', candidates: [candidate], skipped: [] };
}
