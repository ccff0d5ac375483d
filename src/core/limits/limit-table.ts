interface Row {
  /** Where it stands in what holds for a user. */
  readonly field: string;
  /** What refuses a request is called so in metrics; of what is counted, also in messages and in headers of answers. */
  readonly refusal: string;
}

/** Counted in a minute, or at the moment (`minute.ts`). */
interface MinuteRow extends Row {
  readonly kind: 'minute';
}

/** Money in a period (`budget.ts`). */
interface BudgetRow extends Row {
  readonly kind: 'budget';
  readonly period: string;
}

/**
 * The limits of users by the names that tables and operators know. All else follows from it: what may be said of one,
 * what holds, what is counted, what refuses and which metric tells so. The compiler asks for what cannot follow.
 */
export const limitTable = {
  requests_per_minute: { field: 'requestsPerMinute', kind: 'minute', refusal: 'requests' },
  tokens_per_minute: { field: 'tokensPerMinute', kind: 'minute', refusal: 'tokens' },
  /** Streamed answers under way at once. */
  streams: { field: 'streams', kind: 'minute', refusal: 'streams' },
  budget_usd_per_day: { field: 'dayMicroUsd', kind: 'budget', refusal: 'budget_day', period: 'day' },
  budget_usd_per_month: { field: 'monthMicroUsd', kind: 'budget', refusal: 'budget_month', period: 'month' },
} as const satisfies Readonly<Record<string, MinuteRow | BudgetRow>>;

type LimitTable = typeof limitTable;
export type LimitName = keyof LimitTable;
export type LimitRow = LimitTable[LimitName];
export type LimitKind = LimitRow['kind'];
export type LimitRowOf<Kind extends LimitKind> = Extract<LimitRow, { readonly kind: Kind }>;

export const limitNames = Object.keys(limitTable) as readonly LimitName[];
export const limitFields: readonly LimitRow['field'][] = limitNames.map((name) => limitTable[name].field);

const rows: readonly LimitRow[] = Object.values(limitTable);
export const minuteRows = rows.filter((row): row is LimitRowOf<'minute'> => row.kind === 'minute');
export const budgetRows = rows.filter((row): row is LimitRowOf<'budget'> => row.kind === 'budget');

/** Which limit refused a request. */
export type MinuteLimit = LimitRowOf<'minute'>['refusal'];
export type RefusingLimit = LimitRow['refusal'];
export const refusingLimits: readonly RefusingLimit[] = rows.map(({ refusal }) => refusal);

/** Counted up within a minute, which all replicas share; streams come and go. */
export type Counted = Exclude<MinuteLimit, 'streams'>;
/** Requests that were admitted, tokens of answers that are settled. */
export type Counts = Readonly<Record<Counted, number>>;
export const countedRows = minuteRows.filter(
  (row): row is Extract<LimitRow, { readonly refusal: Counted }> => row.refusal !== 'streams',
);
export const countedLimits: readonly Counted[] = countedRows.map(({ refusal }) => refusal);
