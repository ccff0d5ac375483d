import type { ProviderName } from '../provider-name.ts';
import { providerTraits } from '../provider-name.ts';

/** Where a key's answers are produced. */
export const residencies = ['global', 'india'] as const;
export type Residency = (typeof residencies)[number];

/** What a request is bound to, whoever says so; `null` is no restriction. */
export type ResidencyBound = 'india' | null;

/**
 * Residency of one key record. A `self_hosted` record is Indian only if its declared region is on the
 * operator's list (compared without case); anything unknown is `global`, so an error can only refuse.
 */
export function residencyOf(
  provider: ProviderName,
  declaredRegion: string | null,
  indiaRegions: ReadonlySet<string>,
): Residency {
  const residency = providerTraits[provider].residency;
  if (residency !== 'declared') return residency;
  return declaredRegion !== null && indiaRegions.has(declaredRegion.trim().toLowerCase())
    ? 'india'
    : 'global';
}

/** What holds for a request: whoever wants the most. Nobody can loosen what another has decided. */
export function strictestResidency(
  asked: ResidencyBound,
  ofUser: ResidencyBound,
  ofDeployment: ResidencyBound,
): ResidencyBound {
  return asked ?? ofUser ?? ofDeployment;
}

/** Who may demand that a request stays in India, the strongest word first. */
export const residencyBinders = ['deployment', 'user', 'request'] as const;
export type ResidencyBinder = (typeof residencyBinders)[number];

/**
 * By whose word it holds: the deployment's tables, else what an operator bound the user to, else the request's own
 * header. Null exactly where `strictestResidency` is.
 */
export function residencyBinder(
  asked: ResidencyBound,
  ofUser: ResidencyBound,
  ofDeployment: ResidencyBound,
): ResidencyBinder | null {
  if (ofDeployment !== null) return 'deployment';
  if (ofUser !== null) return 'user';
  return asked === null ? null : 'request';
}

/** The one predicate that guards tier, override, cache and the socket (SPEC 4.5, routing rule 3). */
export function residencyAllows(bound: ResidencyBound, actual: Residency): boolean {
  return bound === null || bound === actual;
}
