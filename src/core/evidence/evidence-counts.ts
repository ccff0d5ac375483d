import { z } from 'zod';
import type { ResidencyBinder } from '../request/residency.ts';
import { residencies, residencyBinders } from '../request/residency.ts';
import { shownCount } from '../shown-values.ts';

/** Where a request was served; `none`: nobody answered. */
export const servedPlaces = [...residencies, 'cache', 'none'] as const;
export type ServedPlace = (typeof servedPlaces)[number];

const countsOf = <const Names extends readonly string[]>(names: Names) =>
  z.strictObject(
    Object.fromEntries(names.map((name) => [name, shownCount])) as Record<Names[number], typeof shownCount>,
  );

/** What is counted of an hour, and of all of them. */
export const countsSchema = z.strictObject({
  /** All requests of the log in that time, of the user where the report is of one. */
  rows: shownCount,
  /** Those that had to stay in India: each is a line. */
  listed: shownCount,
  bound_by: countsOf([...residencyBinders, 'unknown']),
  served_in: countsOf(servedPlaces),
  /** Where their attempts went to, those included that failed. */
  attempts_in: countsOf([...residencies, 'unknown']),
});
export type EvidenceCounts = z.output<typeof countsSchema>;

/** What counts of a request. */
export interface CountedRequest {
  readonly bound_by: ResidencyBinder | null;
  readonly served_in: ServedPlace;
  readonly attempts: readonly { readonly end: string | null; readonly residency: string | null }[];
}

const zeros = <Name extends string>(names: readonly Name[]): Record<Name, number> =>
  Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;

export function noCounts(): EvidenceCounts {
  return {
    rows: 0,
    listed: 0,
    bound_by: zeros([...residencyBinders, 'unknown']),
    served_in: zeros(servedPlaces),
    attempts_in: zeros([...residencies, 'unknown']),
  };
}

export function countRequest(counts: EvidenceCounts, request: CountedRequest): void {
  counts.listed += 1;
  counts.bound_by[request.bound_by ?? 'unknown'] += 1;
  counts.served_in[request.served_in] += 1;
  for (const { end, residency } of request.attempts) {
    // Those that nobody was asked in are no attempts.
    if (end === null) continue;
    counts.attempts_in[residency === 'india' || residency === 'global' ? residency : 'unknown'] += 1;
  }
}

export function addCounts(sums: EvidenceCounts, counts: EvidenceCounts): void {
  sums.rows += counts.rows;
  sums.listed += counts.listed;
  for (const name of [...residencyBinders, 'unknown'] as const) sums.bound_by[name] += counts.bound_by[name];
  for (const name of servedPlaces) sums.served_in[name] += counts.served_in[name];
  for (const name of [...residencies, 'unknown'] as const) sums.attempts_in[name] += counts.attempts_in[name];
}

/** The path of the first number that differs, or null. */
export function firstDifference(stated: EvidenceCounts, found: EvidenceCounts): string | null {
  for (const name of ['rows', 'listed'] as const) if (stated[name] !== found[name]) return name;
  for (const group of ['bound_by', 'served_in', 'attempts_in'] as const) {
    const [numbers, others]: Readonly<Record<string, number>>[] = [stated[group], found[group]];
    for (const name of Object.keys(numbers ?? {})) {
      if (numbers?.[name] !== others?.[name]) return `${group}.${name}`;
    }
  }
  return null;
}
