import { z } from 'zod';
import type { LimitName, LimitRow } from './limit-table.ts';
import { limitFields, limitNames, limitTable } from './limit-table.ts';

/** Larger than any use, small enough that sums of them stay exact. */
const mostCounted = 1_000_000_000;
/** Dollars with at most six places, so that they are whole micro-dollars. */
const dollars = /^\d{1,9}(\.\d{1,6})?$/;
const microDigits = 6;

/** What a limit of either kind has to be, in the words of a refusal. */
export const countedText = `a whole number from 1 to ${mostCounted}`;
export const dollarsText = 'dollars above 0 such as "2.50", with at most six decimal places';

/** Every issue of a value says the same: all that it may be. */
const mustBe = (text: string) => ({ error: `must be ${text}`, abort: true });

const counted = z.int(mustBe(countedText)).min(1, mustBe(countedText)).max(mostCounted, mustBe(countedText));

/** Digit for digit, no float in between. */
function microUsd(text: string): bigint {
  const [whole = '0', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(microDigits, '0'));
}

const isBudget = (text: string): boolean => dollars.test(text) && microUsd(text) > 0n;

/** A text, or a number whose shortest form is one: 0.1 means a tenth of a dollar. */
const budget = z.union(
  [
    z.string().refine(isBudget, mustBe(dollarsText)),
    z.number().refine((value) => isBudget(String(value)), mustBe(dollarsText)),
  ],
  mustBe(dollarsText),
);

/** What a limit is written as, by its kind, and what it is here; money in micro-dollars. */
const schemas = { minute: counted, budget } as const;
interface Amounts {
  readonly minute: number;
  readonly budget: bigint;
}

type Kinds = { readonly [Name in LimitName]: (typeof limitTable)[Name]['kind'] };
type Fields = { readonly [Name in LimitName]: (typeof schemas)[Kinds[Name]] };

const fields = Object.fromEntries(
  limitNames.map((name) => [name, schemas[limitTable[name].kind]]),
) as unknown as Fields;

/** Whether a limit is a number of something, or money. */
export const isMoney = (name: LimitName): boolean => limitTable[name].kind === 'budget';

/** What the tables limit for each user; what is left out has no limit. */
export const defaultLimitFields = z.strictObject(fields).partial().shape;

type Exception<Name extends LimitName> = z.ZodNullable<Fields[Name]>;

/** One limit of one user; null: none for this user. */
const exceptionFields = Object.fromEntries(
  limitNames.map((name) => [name, fields[name].nullable()]),
) as unknown as { readonly [Name in LimitName]: Exception<Name> };

/** Where a user is an exception from the tables; what is left out is as the tables say. */
export const userLimitsSchema = z.strictObject(exceptionFields).partial();
export type UserLimits = z.infer<typeof userLimitsSchema>;

type Change<Name extends LimitName> = z.ZodOptional<
  z.ZodUnion<readonly [Exception<Name>, z.ZodLiteral<'default'>]>
>;

function change(name: LimitName) {
  const allowed = `${isMoney(name) ? dollarsText : countedText}, null or "default"`;
  return z.union([exceptionFields[name], z.literal('default')], mustBe(allowed)).optional();
}

/** What an operator changes of a user's exceptions; `default`: as the tables say again. */
export const limitChangesSchema = z.strictObject(
  Object.fromEntries(limitNames.map((name) => [name, change(name)])) as unknown as {
    readonly [Name in LimitName]: Change<Name>;
  },
);
export type LimitChanges = z.infer<typeof limitChangesSchema>;

/** What holds for one user; null: no such limit. */
export type Limits = { readonly [Row in LimitRow as Row['field']]: Amounts[Row['kind']] | null };

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
  const amounts = limitNames.map((name) => {
    const amount = isMoney(name) ? money(limits[name]) : limits[name];
    return [limitTable[name].field, amount] as const;
  });
  return Object.freeze(Object.fromEntries(amounts)) as LimitExceptions;
}

type DefaultLimits = { readonly [Name in LimitName]?: z.infer<(typeof fields)[Name]> | undefined };

const unlimited = Object.freeze(Object.fromEntries(limitFields.map((field) => [field, null]))) as Limits;

type Undecided = { -readonly [Field in keyof Limits]: Limits[Field] };

function decide<Field extends keyof Limits>(limits: Undecided, exceptions: LimitExceptions, field: Field) {
  const amount = exceptions[field];
  if (amount !== undefined) limits[field] = amount;
}

/** What holds for a user under these tables and exceptions; null: nothing is limited. */
export function limitsOf(defaults: Limits | null, exceptions: LimitExceptions | null): Limits | null {
  if (exceptions === null) return defaults;
  const limits: Undecided = { ...(defaults ?? unlimited) };
  for (const field of limitFields) decide(limits, exceptions, field);
  return limitFields.every((field) => limits[field] === null) ? null : limits;
}

/** What the tables say of every user; null: they limit nothing. */
export function compileDefaults(limits: DefaultLimits): Limits | null {
  const named = limitNames.filter((name) => limits[name] !== undefined);
  const exceptions = Object.fromEntries(named.map((name) => [name, limits[name]])) as UserLimits;
  const compiled = limitsOf(null, compileExceptions(exceptions));
  return compiled === null ? null : Object.freeze(compiled);
}
