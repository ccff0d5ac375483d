import { z } from 'zod';

/** Larger than any use, small enough that sums of them stay exact. */
const mostCounted = 1_000_000_000;
const counted = z.int().positive().max(mostCounted);

/** Dollars with at most six places, so that they are whole micro-dollars. */
const dollars = /^\d{1,9}(\.\d{1,6})?$/;
const dollarsMessage = 'must be dollars above 0 with at most six decimal places, such as "2.50"';
const microDigits = 6;

/** Digit for digit, no float in between. */
function microUsd(text: string): bigint {
  const [whole = '0', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(microDigits, '0'));
}

const isBudget = (text: string): boolean => dollars.test(text) && microUsd(text) > 0n;

/** A text, or a number whose shortest form is one: 0.1 means a tenth of a dollar. */
const budget = z.union([
  z.string().refine(isBudget, dollarsMessage),
  z.number().refine((value) => isBudget(String(value)), dollarsMessage),
]);

const fields = {
  requests_per_minute: counted,
  tokens_per_minute: counted,
  /** Streamed answers under way at once. */
  streams: counted,
  budget_usd_per_day: budget,
  budget_usd_per_month: budget,
} as const;

export type LimitName = keyof typeof fields;
export const limitNames = Object.keys(fields) as readonly LimitName[];

/** What the tables limit for each user; what is left out has no limit. */
export const defaultLimitFields = {
  requests_per_minute: fields.requests_per_minute.optional(),
  tokens_per_minute: fields.tokens_per_minute.optional(),
  streams: fields.streams.optional(),
  budget_usd_per_day: fields.budget_usd_per_day.optional(),
  budget_usd_per_month: fields.budget_usd_per_month.optional(),
} as const;

/** One limit of one user; null: none for this user. */
const exceptionFields = {
  requests_per_minute: fields.requests_per_minute.nullable(),
  tokens_per_minute: fields.tokens_per_minute.nullable(),
  streams: fields.streams.nullable(),
  budget_usd_per_day: fields.budget_usd_per_day.nullable(),
  budget_usd_per_month: fields.budget_usd_per_month.nullable(),
} as const;

/** Where a user is an exception from the tables; what is left out is as the tables say. */
export const userLimitsSchema = z.strictObject(exceptionFields).partial();
export type UserLimits = z.infer<typeof userLimitsSchema>;

const change = <Schema extends z.ZodType>(schema: Schema) =>
  z.union([schema, z.literal('default')]).optional();

/** What an operator changes of a user's exceptions; `default`: as the tables say again. */
export const limitChangesSchema = z.strictObject({
  requests_per_minute: change(exceptionFields.requests_per_minute),
  tokens_per_minute: change(exceptionFields.tokens_per_minute),
  streams: change(exceptionFields.streams),
  budget_usd_per_day: change(exceptionFields.budget_usd_per_day),
  budget_usd_per_month: change(exceptionFields.budget_usd_per_month),
});
export type LimitChanges = z.infer<typeof limitChangesSchema>;

/** What holds for one user; null: no such limit. */
export interface Limits {
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly streams: number | null;
  readonly dayMicroUsd: bigint | null;
  readonly monthMicroUsd: bigint | null;
}

/** The same of a user's exceptions: what is undefined is as the tables say. */
export type LimitExceptions = { readonly [Name in keyof Limits]: Limits[Name] | undefined };

/** The exceptions in what a row holds; null: there are none. What this release does not know is passed over. */
export function readUserLimits(stored: unknown): UserLimits | null {
  if (typeof stored !== 'object' || stored === null) return null;
  const known = limitNames.flatMap((name) => {
    const parsed = exceptionFields[name].safeParse((stored as Readonly<Record<string, unknown>>)[name]);
    return parsed.success ? [[name, parsed.data] as const] : [];
  });
  return known.length === 0 ? null : (Object.fromEntries(known) as UserLimits);
}

const money = (value: string | number | null | undefined): bigint | null | undefined =>
  value === null || value === undefined ? value : microUsd(String(value));

/** Exact integers of what a row says of a user. */
export function compileExceptions(limits: UserLimits | null): LimitExceptions | null {
  if (limits === null) return null;
  return Object.freeze({
    requestsPerMinute: limits.requests_per_minute,
    tokensPerMinute: limits.tokens_per_minute,
    streams: limits.streams,
    dayMicroUsd: money(limits.budget_usd_per_day),
    monthMicroUsd: money(limits.budget_usd_per_month),
  });
}

type DefaultLimits = { readonly [Name in LimitName]?: z.infer<(typeof fields)[Name]> | undefined };

const unlimited: Limits = Object.freeze({
  requestsPerMinute: null,
  tokensPerMinute: null,
  streams: null,
  dayMicroUsd: null,
  monthMicroUsd: null,
});

/** What holds for a user under these tables and exceptions; null: nothing is limited. */
export function limitsOf(defaults: Limits | null, exceptions: LimitExceptions | null): Limits | null {
  if (exceptions === null) return defaults;
  const base = defaults ?? unlimited;
  const { requestsPerMinute, tokensPerMinute, streams, dayMicroUsd, monthMicroUsd } = exceptions;
  const limits: Limits = {
    requestsPerMinute: requestsPerMinute === undefined ? base.requestsPerMinute : requestsPerMinute,
    tokensPerMinute: tokensPerMinute === undefined ? base.tokensPerMinute : tokensPerMinute,
    streams: streams === undefined ? base.streams : streams,
    dayMicroUsd: dayMicroUsd === undefined ? base.dayMicroUsd : dayMicroUsd,
    monthMicroUsd: monthMicroUsd === undefined ? base.monthMicroUsd : monthMicroUsd,
  };
  return isUnlimited(limits) ? null : limits;
}

function isUnlimited(limits: Limits): boolean {
  return (
    limits.requestsPerMinute === null &&
    limits.tokensPerMinute === null &&
    limits.streams === null &&
    limits.dayMicroUsd === null &&
    limits.monthMicroUsd === null
  );
}

/** What the tables say of every user; null: they limit nothing. */
export function compileDefaults(limits: DefaultLimits): Limits | null {
  const named = limitNames.filter((name) => limits[name] !== undefined);
  const exceptions = Object.fromEntries(named.map((name) => [name, limits[name]])) as UserLimits;
  const compiled = limitsOf(null, compileExceptions(exceptions));
  return compiled === null ? null : Object.freeze(compiled);
}
