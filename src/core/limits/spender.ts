import type { BudgetPeriod, ByPeriod, Periods, Spent, ToldShare } from './budget.ts';
import { budgetOf, budgetPeriods, budgetRefusal, periodsAt, reachedShare, toldShares } from './budget.ts';
import type { Refusal } from './refusal.ts';
import type { Limits } from './user-limits.ts';

function ofEach<Value>(make: (period: BudgetPeriod) => Value): Record<BudgetPeriod, Value> {
  const made: Partial<Record<BudgetPeriod, Value>> = {};
  for (const period of budgetPeriods) made[period] = make(period);
  return made as Record<BudgetPeriod, Value>;
}

const contains = ({ startMs, endMs }: Periods[BudgetPeriod], wallMs: number): boolean =>
  wallMs >= startMs && wallMs < endMs;

/** A share of a budget that a user has reached. */
export interface ReachedShare {
  readonly period: BudgetPeriod;
  readonly share: ToldShare;
}

/**
 * What one user spends of its budgets: what was read, what was settled here since, and what requests may have
 * cost beyond their rows. Whoever asks says what time it is, in milliseconds since the epoch.
 */
export class Spender {
  limits: Limits;
  #periods: Periods;
  #read: Spent = ofEach(() => 0n);
  /** Nothing was, until then. */
  #wasHeard = false;
  /** Settled here since the reading, or since the period began. */
  #own = 0n;
  /** Beyond what was stated: in no reading, so kept until the period ends. */
  readonly #guessed = ofEach(() => 0n);
  readonly #told: Record<BudgetPeriod, ToldShare | 0> = ofEach(() => 0);

  constructor(limits: Limits, wallMs: number) {
    this.limits = limits;
    this.#periods = periodsAt(wallMs);
  }

  /** Settled here since the reading: the next one holds it, but for rows on their way. */
  get own(): bigint {
    return this.#own;
  }

  /** A period that begins, begins with nothing spent. True: one has, and what was read is old. */
  enter(wallMs: number): boolean {
    if (budgetPeriods.every((period) => contains(this.#periods[period], wallMs))) return false;
    const before = this.#periods;
    const [read, own] = [this.#read, this.#own];
    this.#periods = periodsAt(wallMs);
    const goesOn = (period: BudgetPeriod) => this.#periods[period].startMs === before[period].startMs;
    this.#read = ofEach((period) => (goesOn(period) ? read[period] + own : 0n));
    this.#own = 0n;
    for (const period of budgetPeriods) {
      if (goesOn(period)) continue;
      this.#guessed[period] = 0n;
      this.#told[period] = 0;
    }
    return true;
  }

  /** What an answer cost that is settled. */
  spend(microUsd: bigint): void {
    this.#own += microUsd;
  }

  /** What a request may have cost beyond what its row says. */
  guess(microUsd: bigint): void {
    for (const period of budgetPeriods) this.#guessed[period] += microUsd;
  }

  /**
   * Takes over what was read of `periods`; `included`: what of `own` is in it, null where nobody can say. False: a
   * period has begun since, of which it says nothing.
   */
  hear(read: Spent, periods: Periods, included: bigint | null): boolean {
    if (budgetPeriods.some((period) => periods[period].startMs !== this.#periods[period].startMs))
      return false;
    this.#read = included === null && this.#wasHeard ? this.#atLeast(read) : read;
    this.#own -= included ?? 0n;
    this.#wasHeard = true;
    return true;
  }

  /** The greater of both sums, with `own` beside it: what others spent is seen, and nothing of ours counts twice. */
  #atLeast(read: Spent): Spent {
    return ofEach((period) => {
      const besides = read[period] - this.#own;
      return besides > this.#read[period] ? besides : this.#read[period];
    });
  }

  /** What keeps one more request out; null: nothing. */
  refusal(wallMs: number): Refusal | null {
    return budgetRefusal(this.limits, this.#spent, this.#periods, wallMs);
  }

  /** The highest share of each budget that is reached; 0: none. */
  shares(): ByPeriod<ToldShare | 0> {
    const spent = this.#spent;
    return ofEach((period) => reachedShare(budgetOf(this.limits, period), spent[period]));
  }

  /** The shares that are reached and were not asked for before in their period. */
  untoldShares(): readonly ReachedShare[] {
    const shares = this.shares();
    return budgetPeriods.flatMap((period) => {
      const before = this.#told[period];
      if (shares[period] <= before) return [];
      this.#told[period] = shares[period];
      return toldShares
        .filter((share) => share > before && share <= shares[period])
        .map((share) => ({ period, share }));
    });
  }

  get #spent(): Spent {
    return ofEach((period) => this.#read[period] + this.#own + this.#guessed[period]);
  }
}
