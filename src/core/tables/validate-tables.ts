import type { z } from 'zod';
import { pathText } from '../path-text.ts';
import { providerTraits } from '../provider-name.ts';
import { tierNames } from './mode.ts';
import type { RoutingTablesDocument } from './routing-tables.ts';
import { routingTablesSchema } from './routing-tables.ts';

/** One thing an operator has to correct; `path` as they would write it: `tiers.cheap[0].provider`. */
export interface TablesProblem {
  readonly path: string;
  readonly message: string;
}

export type TablesValidation =
  | { readonly ok: true; readonly document: RoutingTablesDocument }
  | { readonly ok: false; readonly problems: readonly TablesProblem[] };

/** More would bury the first cause in a log line or an Event. */
const maxProblems = 20;
const maxMessageLength = 300;

const shownPath = (path: readonly PropertyKey[]): string => pathText(path) || '(document)';

function shapeProblems(issues: readonly z.core.$ZodIssue[]): TablesProblem[] {
  return issues.flatMap((issue) => {
    const message = issue.message.slice(0, maxMessageLength);
    if (issue.code !== 'unrecognized_keys') return [{ path: shownPath(issue.path), message }];
    return issue.keys.map((key) => ({ path: shownPath([...issue.path, key]), message: 'unknown field' }));
  });
}

/** Rows that say the same thing twice: the second would be ignored in silence. */
function repeatedRows<Row>(
  rows: readonly Row[],
  path: readonly PropertyKey[],
  nameOf: (row: Row) => string,
): TablesProblem[] {
  const first = new Map<string, number>();
  return rows.flatMap((row, index) => {
    const name = nameOf(row);
    const earlier = first.get(name);
    if (earlier === undefined) {
      first.set(name, index);
      return [];
    }
    return [{ path: shownPath([...path, index]), message: `repeats row ${earlier} (${name})` }];
  });
}

function crossProblems(document: RoutingTablesDocument): TablesProblem[] {
  const problems: TablesProblem[] = [];
  for (const tier of tierNames) {
    const candidates = document.tiers[tier];
    problems.push(...repeatedRows(candidates, ['tiers', tier], (row) => `${row.provider}:${row.model}`));
    if (!candidates.some((candidate) => providerTraits[candidate.provider].residency === 'india')) {
      problems.push({
        path: `tiers.${tier}`,
        message: 'needs a candidate with India residency, or X-Gateway-Residency: india can never be served',
      });
    }
  }
  problems.push(...repeatedRows(document.prices, ['prices'], (row) => `${row.provider}:${row.model}`));
  problems.push(...repeatedRows(document.models, ['models'], (row) => `${row.provider}:${row.match}`));
  if (document.cooldown.first_seconds > document.cooldown.longest_seconds) {
    problems.push({ path: 'cooldown.first_seconds', message: 'is longer than longest_seconds' });
  }
  return problems;
}

/** Checks a parsed tables document, shape first, then what rows say about each other. Never throws. */
export function validateTables(value: unknown): TablesValidation {
  const parsed = routingTablesSchema.safeParse(value);
  const problems = parsed.success ? crossProblems(parsed.data) : shapeProblems(parsed.error.issues);
  if (parsed.success && problems.length === 0) return { ok: true, document: parsed.data };
  return { ok: false, problems: problems.slice(0, maxProblems) };
}
