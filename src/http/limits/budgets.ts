import { LRUCache } from 'lru-cache';
import type { BudgetPeriod, Periods, Spent, ToldShare } from '../../core/limits/budget.ts';
import { budgetPeriods, budgetRefusal, periodsAt, reachedShare } from '../../core/limits/budget.ts';
import type { Refusal } from '../../core/limits/refusal.ts';
import type { Limits } from '../../core/limits/user-limits.ts';

/** Users with budgets who are known at once, some 300 bytes each; others are read anew. */
const maxUsers = 20_000;
/** What was read is good for so long; what was settled here since is added. */
const freshMs = 10_000;
/** A user who is not known yet waits no longer for the first reading, and is then let in: budgets are soft. */
export const firstReadMs = 250;
/** Read by one statement. */
const mostRead = 200;
/** A reading that failed is tried again after this. */
const retryMs = 1_000;
/** Users who have sent nothing for longer are in no gauge: their limits may be others by now. */
const shownMs = 60 * 60_000;

/** What users spent by what is written down, those with nothing left out. Rejects while the database is away. */
export type ReadSpent = (
  userIds: readonly string[],
  periods: Pick<Periods, 'dayStartMs' | 'monthStartMs'>,
) => Promise<ReadonlyMap<string, Spent>>;

export interface BudgetsIo {
  readonly read: ReadSpent;
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  /** A user has reached this share of a budget, once in its period on this replica. */
  readonly onReached: (userId: string, period: BudgetPeriod, share: ToldShare) => void;
}

/** One user's spending in the periods that were current at the last look. */
interface Spender {
  readonly userId: string;
  periods: Periods;
  limits: Limits;
  read: Spent;
  /** Settled here since the reading, or since the period began. */
  own: bigint;
  /** What answers that were cut may have cost beyond that: in no reading, so kept until the period ends. */
  readonly guessed: Record<BudgetPeriod, bigint>;
  /** Null: never, for these periods. */
  readAtMs: number | null;
  triedAtMs: number;
  seenAtMs: number;
  isWaiting: boolean;
  readonly told: Record<BudgetPeriod, ToldShare | 0>;
}

const nothing: Spent = { dayMicroUsd: 0n, monthMicroUsd: 0n };

/** Soft budgets of users: what is written down, read now and then, and what was settled here since. */
export class Budgets {
  readonly #io: BudgetsIo;
  readonly #spenders = new LRUCache<string, Spender>({ max: maxUsers });
  #waiting: Spender[] = [];
  #reading: Promise<void> | null = null;

  constructor(io: BudgetsIo) {
    this.#io = io;
  }

  /** What refuses a request of the user by what is known now; null: nothing. A reading may begin behind it. */
  known(userId: string, limits: Limits): Refusal | null {
    const spender = this.#spenders.get(userId);
    return spender === undefined ? null : this.#judge(this.#look(spender, limits));
  }

  /** The same; who is not known yet is read first, but nobody waits for long. Never rejects. */
  check(userId: string, limits: Limits): Refusal | null | Promise<Refusal | null> {
    const spender = this.#look(this.#spenders.get(userId) ?? this.#add(userId, limits), limits);
    if (spender.readAtMs !== null || this.#reading === null) return this.#judge(spender);
    return this.#waitFor(spender, this.#reading);
  }

  /** What an answer cost that is settled; nothing for users without budgets. */
  spend(userId: string, microUsd: bigint): void {
    if (this.#spenders.size === 0 || microUsd === 0n) return;
    const spender = this.#spenders.peek(userId);
    if (spender === undefined) return;
    this.#enter(spender);
    spender.own += microUsd;
    this.#tell(spender);
  }

  /** What an answer that was cut may have cost beyond what was stated. */
  guess(userId: string, microUsd: bigint): void {
    const spender = this.#spenders.peek(userId);
    if (spender === undefined || microUsd <= 0n) return;
    this.#enter(spender);
    for (const period of budgetPeriods) spender.guessed[period] += microUsd;
    this.#tell(spender);
  }

  /** Users known here who have reached a share of a budget, those who reached all of it among both. */
  reached(): Record<BudgetPeriod, Record<ToldShare, number>> {
    const counts = { day: { 80: 0, 100: 0 }, month: { 80: 0, 100: 0 } };
    const shownSinceMs = this.#io.monotonicMs() - shownMs;
    for (const spender of this.#spenders.values()) {
      if (spender.seenAtMs < shownSinceMs) continue;
      this.#enter(spender);
      for (const period of budgetPeriods) {
        const share = shareOf(spender, period);
        if (share >= 80) counts[period][80] += 1;
        if (share === 100) counts[period][100] += 1;
      }
    }
    return counts;
  }

  #add(userId: string, limits: Limits): Spender {
    const spender: Spender = {
      userId,
      limits,
      periods: periodsAt(this.#io.wallMs()),
      read: nothing,
      own: 0n,
      guessed: { day: 0n, month: 0n },
      readAtMs: null,
      triedAtMs: Number.NEGATIVE_INFINITY,
      seenAtMs: 0,
      isWaiting: false,
      told: { day: 0, month: 0 },
    };
    this.#spenders.set(userId, spender);
    return spender;
  }

  /** Brings a user to the present, and has it read where what is known is old. */
  #look(spender: Spender, limits: Limits): Spender {
    const nowMs = this.#io.monotonicMs();
    spender.limits = limits;
    spender.seenAtMs = nowMs;
    this.#enter(spender);
    const isOld = spender.readAtMs === null || nowMs - spender.readAtMs >= freshMs;
    if (isOld && !spender.isWaiting && nowMs - spender.triedAtMs >= retryMs) {
      spender.isWaiting = true;
      spender.triedAtMs = nowMs;
      this.#waiting.push(spender);
      this.#reading ??= this.#readAll();
    }
    return spender;
  }

  /** A new day, and perhaps month, begins with nothing spent. */
  #enter(spender: Spender): void {
    const wallMs = this.#io.wallMs();
    if (wallMs < spender.periods.dayEndMs && wallMs >= spender.periods.dayStartMs) return;
    const before = spender.periods;
    spender.periods = periodsAt(wallMs);
    const isSameMonth = spender.periods.monthStartMs === before.monthStartMs;
    const { read, own, guessed } = spender;
    spender.read = { dayMicroUsd: 0n, monthMicroUsd: isSameMonth ? read.monthMicroUsd + own : 0n };
    spender.own = 0n;
    guessed.day = 0n;
    if (!isSameMonth) guessed.month = 0n;
    spender.readAtMs = null;
    spender.told.day = 0;
    if (!isSameMonth) spender.told.month = 0;
  }

  #judge(spender: Spender): Refusal | null {
    const spent = { dayMicroUsd: dayOf(spender), monthMicroUsd: monthOf(spender) };
    return budgetRefusal(spender.limits, spent, spender.periods, this.#io.wallMs());
  }

  async #waitFor(spender: Spender, reading: Promise<void>): Promise<Refusal | null> {
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, firstReadMs);
    });
    await Promise.race([reading, patience]);
    clearTimeout(timer);
    return this.#judge(spender);
  }

  /** One statement at a time, of all who wait by then. */
  async #readAll(): Promise<void> {
    // Whoever asks in the same turn is read with the first.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#readSome(this.#waiting.splice(0, mostRead));
    this.#reading = null;
  }

  async #readSome(spenders: readonly Spender[]): Promise<void> {
    const periods = periodsAt(this.#io.wallMs());
    const ownBefore = spenders.map(({ own }) => own);
    const beganAtMs = this.#io.monotonicMs();
    const ids = spenders.map(({ userId }) => userId);
    const read = await this.#io.read(ids, periods).catch(() => null);
    spenders.forEach((spender, index) => {
      spender.isWaiting = false;
      // What was settled here counts on while the database is away; a reading of yesterday says nothing of today.
      if (read === null || spender.periods.dayStartMs !== periods.dayStartMs) return;
      spender.read = read.get(spender.userId) ?? nothing;
      spender.own -= ownBefore[index] ?? 0n;
      spender.readAtMs = beganAtMs;
      this.#tell(spender);
    });
  }

  #tell(spender: Spender): void {
    for (const period of budgetPeriods) {
      const share = shareOf(spender, period);
      for (const told of [80, 100] as const) {
        if (share < told || spender.told[period] >= told) continue;
        spender.told[period] = told;
        this.#io.onReached(spender.userId, period, told);
      }
    }
  }
}

const dayOf = ({ read, own, guessed }: Spender): bigint => read.dayMicroUsd + own + guessed.day;
const monthOf = ({ read, own, guessed }: Spender): bigint => read.monthMicroUsd + own + guessed.month;

function shareOf(spender: Spender, period: BudgetPeriod): ToldShare | 0 {
  const { dayMicroUsd, monthMicroUsd } = spender.limits;
  return period === 'day'
    ? reachedShare(dayMicroUsd, dayOf(spender))
    : reachedShare(monthMicroUsd, monthOf(spender));
}
