import { hasBudget } from '../core/limits/budget.ts';
import type { MinuteCounts } from '../core/limits/minute.ts';
import { countsMinutes } from '../core/limits/minute.ts';
import type { Refusal } from '../core/limits/refusal.ts';
import { usedUp } from '../core/limits/used-up.ts';
import type { Limits } from '../core/limits/user-limits.ts';
import type { UserMinute } from '../core/limits/user-minute.ts';
import type { SettledRequest } from '../core/settled-request.ts';
import type { Budgets } from './budgets.ts';
import type { Admitted, UserMinutes } from './user-minutes.ts';

/** What refuses a request. */
export interface Refused {
  readonly refusal: Refusal;
  /** Null: a budget did, and the minute was not looked at. */
  readonly counts: MinuteCounts | null;
}

/** Null: it may go on, and nothing of it is counted by the minute. */
export type GateDecision = Refused | Admitted | null;

/** Holds back what is beyond the limits of its user. Whoever has none never comes here. */
export class LimitGate {
  readonly #minutes: UserMinutes;
  /** Null: there is no database, and no sums. */
  readonly #budgets: Budgets | null;

  constructor(minutes: UserMinutes, budgets: Budgets | null) {
    this.#minutes = minutes;
    this.#budgets = budgets;
  }

  /** What refuses a request whatever it asks for, as far as it is known here already; null: nothing. */
  known(userId: string, limits: Limits): Refused | null {
    const known = this.#minutes.known(userId, limits);
    if (known !== null || !hasBudget(limits)) return known;
    const refusal = this.#budgets?.known(userId, limits) ?? null;
    return refusal === null ? null : { refusal, counts: null };
  }

  /** Decides for one more request, and counts it; it is to be held until its end. Never rejects. */
  admit(userId: string, limits: Limits, isStream: boolean): GateDecision | Promise<GateDecision> {
    if (!hasBudget(limits) || this.#budgets === null) return this.#admitMinute(userId, limits, isStream);
    const refusal = this.#budgets.check(userId, limits);
    // Of a user's first request only.
    if (refusal instanceof Promise) {
      return refusal.then((read) =>
        read === null ? this.#admitMinute(userId, limits, isStream) : { refusal: read, counts: null },
      );
    }
    return refusal === null ? this.#admitMinute(userId, limits, isStream) : { refusal, counts: null };
  }

  /** What an admitted request holds. */
  hold({ minute }: Admitted, isStream: boolean): Admission {
    return new Admission(this.#minutes, minute, isStream);
  }

  /** What became of a request, of any user. Stored answers cost nothing, and their tokens are nobody's. */
  settled(settled: SettledRequest): void {
    const { userId, costMicroUsd, cachedFrom } = settled;
    if (cachedFrom !== null) return;
    const { tokens, unstatedMicroUsd } = usedUp(settled);
    this.#minutes.spend(userId, tokens);
    this.#budgets?.spend(userId, costMicroUsd);
    // No row will ever say.
    this.#budgets?.guess(userId, unstatedMicroUsd);
  }

  /** Users known here who have reached a share of a budget. */
  reached(): ReturnType<Budgets['reached']> | null {
    return this.#budgets?.reached() ?? null;
  }

  close(): void {
    this.#minutes.close();
  }

  #admitMinute(userId: string, limits: Limits, isStream: boolean): GateDecision | Promise<GateDecision> {
    return countsMinutes(limits) ? this.#minutes.admit(userId, limits, isStream) : null;
  }
}

/** A request that was admitted under limits. */
export class Admission {
  readonly #minutes: UserMinutes;
  readonly #minute: UserMinute;
  #holdsStream: boolean;

  constructor(minutes: UserMinutes, minute: UserMinute, isStream: boolean) {
    this.#minutes = minutes;
    this.#minute = minute;
    this.#holdsStream = isStream;
  }

  /** The client has its answer, or has left: the place of a stream is free. Again: nothing. */
  endStream(): void {
    if (!this.#holdsStream) return;
    this.#holdsStream = false;
    this.#minutes.endStream(this.#minute);
  }

  /** The request is settled. */
  end(): void {
    this.endStream();
    this.#minute.underWay -= 1;
  }
}
