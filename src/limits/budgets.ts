import { LRUCache } from 'lru-cache';
import type { BudgetPeriod, ByPeriod, Spent, ToldShare } from '../core/limits/budget.ts';
import { budgetPeriods, periodsAt, toldShares } from '../core/limits/budget.ts';
import type { Refusal } from '../core/limits/refusal.ts';
import { Spender } from '../core/limits/spender.ts';
import type { Limits } from '../core/limits/user-limits.ts';
import type { ReadSpent } from './ports.ts';

/** Users with budgets who are known at once, some 300 bytes each; others are read anew. */
const maxUsers = 20_000;
/** What was read is good for so long; what was settled here since is added. */
const freshMs = 10_000;
/** Who is not known yet waits no longer for the first reading, once, and is then let in: budgets are soft. */
const firstReadMs = 250;
/** Read by one statement; fewer after one that failed: with years of rows it may have run out of its time. */
const mostRead = 200;
const fewestRead = 5;
/** A reading that failed is tried again after this. */
const retryMs = 1_000;
/** Users who have sent nothing for longer are in no gauge: their limits may be others by now. */
const shownMs = 60 * 60_000;

export interface BudgetsIo {
  readonly read: ReadSpent;
  /**
   * True while rows settled here, of whomever, lie in the spool: what is read then may lack them. What is settled or
   * committed while a reading is on its way may be missing until the next one.
   */
  readonly isBehind: () => boolean;
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  /** A user has reached this share of a budget, once in its period on this replica. */
  readonly onReached: (userId: string, period: BudgetPeriod, share: ToldShare) => void;
}

/** A user with budgets, and when what is known of it was read. */
interface Known {
  readonly userId: string;
  readonly spender: Spender;
  /** Null: never, for the current periods. */
  readAtMs: number | null;
  /** For a first reading that did not come in time: nobody waits for the next ones. */
  hasWaited: boolean;
  triedAtMs: number;
  seenAtMs: number;
  isWaiting: boolean;
}

const nothing: Spent = { day: 0n, month: 0n };

/** Soft budgets of users: what is written down, read now and then, and what was settled here since. */
export class Budgets {
  readonly #io: BudgetsIo;
  readonly #users = new LRUCache<string, Known>({ max: maxUsers });
  #waiting: Known[] = [];
  #reading: Promise<void> | null = null;
  #atOnce = mostRead;

  constructor(io: BudgetsIo) {
    this.#io = io;
  }

  /** What refuses a request of the user by what is known now; null: nothing. A reading may begin behind it. */
  known(userId: string, limits: Limits): Refusal | null {
    const user = this.#users.get(userId);
    return user === undefined ? null : this.#judge(this.#look(user, limits));
  }

  /** The same; who is not known yet is read first, but nobody waits for long. Rejects with bugs only. */
  check(userId: string, limits: Limits): Refusal | null | Promise<Refusal | null> {
    const user = this.#look(this.#users.get(userId) ?? this.#add(userId, limits), limits);
    if (user.readAtMs !== null || user.hasWaited || this.#reading === null) return this.#judge(user);
    return this.#waitFor(user, this.#reading);
  }

  /** What an answer cost that is settled; nothing for users without budgets. */
  spend(userId: string, microUsd: bigint): void {
    if (this.#users.size === 0 || microUsd === 0n) return;
    const user = this.#users.peek(userId);
    if (user === undefined) return;
    this.#enter(user);
    user.spender.spend(microUsd);
    this.#tell(user);
  }

  /** What a request may have cost beyond what its row says. */
  guess(userId: string, microUsd: bigint): void {
    const user = this.#users.peek(userId);
    if (user === undefined || microUsd <= 0n) return;
    this.#enter(user);
    user.spender.guess(microUsd);
    this.#tell(user);
  }

  /** Users known here who have reached a share of a budget, those who reached all of it among both. */
  reached(): ByPeriod<Record<ToldShare, number>> {
    const counts = { day: { 80: 0, 100: 0 }, month: { 80: 0, 100: 0 } };
    const shownSinceMs = this.#io.monotonicMs() - shownMs;
    for (const user of this.#users.values()) {
      if (user.seenAtMs < shownSinceMs) continue;
      this.#enter(user);
      const shares = user.spender.shares();
      for (const period of budgetPeriods)
        for (const share of toldShares) if (shares[period] >= share) counts[period][share] += 1;
    }
    return counts;
  }

  #add(userId: string, limits: Limits): Known {
    const user: Known = {
      userId,
      spender: new Spender(limits, this.#io.wallMs()),
      readAtMs: null,
      hasWaited: false,
      triedAtMs: Number.NEGATIVE_INFINITY,
      seenAtMs: 0,
      isWaiting: false,
    };
    this.#users.set(userId, user);
    return user;
  }

  /** Brings a user to the present, and has it read where what is known is old. */
  #look(user: Known, limits: Limits): Known {
    const nowMs = this.#io.monotonicMs();
    user.spender.limits = limits;
    user.seenAtMs = nowMs;
    this.#enter(user);
    const isOld = user.readAtMs === null || nowMs - user.readAtMs >= freshMs;
    if (isOld && !user.isWaiting && nowMs - user.triedAtMs >= retryMs) {
      user.isWaiting = true;
      user.triedAtMs = nowMs;
      this.#waiting.push(user);
      this.#reading ??= this.#readAll();
    }
    return user;
  }

  #enter(user: Known): void {
    if (!user.spender.enter(this.#io.wallMs())) return;
    user.readAtMs = null;
    user.hasWaited = false;
  }

  #judge({ spender }: Known): Refusal | null {
    return spender.refusal(this.#io.wallMs());
  }

  async #waitFor(user: Known, reading: Promise<void>): Promise<Refusal | null> {
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, firstReadMs);
    });
    await Promise.race([reading, patience]).finally(() => clearTimeout(timer));
    user.hasWaited = user.readAtMs === null;
    return this.#judge(user);
  }

  /** One statement at a time, of all who wait by then. */
  async #readAll(): Promise<void> {
    // Whoever asks in the same turn is read with the first.
    await Promise.resolve();
    try {
      while (this.#waiting.length > 0) await this.#readSome(this.#waiting.splice(0, this.#atOnce));
    } finally {
      this.#reading = null;
    }
  }

  async #readSome(users: readonly Known[]): Promise<void> {
    const periods = periodsAt(this.#io.wallMs());
    const wasBehind = this.#io.isBehind();
    const beganAtMs = this.#io.monotonicMs();
    const ids = users.map(({ userId }) => userId);
    const read = await this.#io.read(ids, periods).catch(() => null);
    this.#atOnce =
      read === null
        ? Math.max(fewestRead, Math.floor(this.#atOnce / 2))
        : Math.min(mostRead, this.#atOnce * 2);
    const isBehind = wasBehind || this.#io.isBehind();
    for (const user of users) user.isWaiting = false;
    for (const user of users) {
      // What was settled here counts on while the database is away.
      if (read === null) continue;
      const { spender, userId } = user;
      // What was settled on the way is in the reading or not. Nobody is refused for what would count twice.
      const included = isBehind ? null : spender.own;
      if (!spender.hear(read.get(userId) ?? nothing, periods, included)) continue;
      user.readAtMs = beganAtMs;
      this.#tell(user);
    }
  }

  #tell({ userId, spender }: Known): void {
    for (const { period, share } of spender.untoldShares()) this.#io.onReached(userId, period, share);
  }
}
