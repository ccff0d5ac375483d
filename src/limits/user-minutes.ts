import type { MinuteCounts } from '../core/limits/minute.ts';
import { minuteMosts, minuteRefusal, refusalBy } from '../core/limits/minute.ts';
import type { Refusal } from '../core/limits/refusal.ts';
import type { Limits } from '../core/limits/user-limits.ts';
import { UserMinute } from '../core/limits/user-minute.ts';
import type { NoAnswer, SharedLimits } from './ports.ts';

/** Users with limits known at once, 300 bytes each: beyond it those are forgotten who have nothing under way. */
const maxUsers = 50_000;
/** Of them, this share makes room at once. */
const forgottenShare = 1 / 16;
/** What is settled is told this much later, together with what else is: nobody waits for it. */
const tellAfterMs = 50;
/** Streams under way are told anew so often that a lease of the store never ends before its replica. */
const renewEveryMs = 5_000;
/** At once, some milliseconds of work for the store. */
const mostTold = 500;

/** How a request was decided: by the store, alone since the store was not asked, or since it did not answer. */
export const storeResults = [
  'shared',
  ...(['unsent', 'unanswered'] as const satisfies readonly NoAnswer[]),
] as const;
export type StoreResult = (typeof storeResults)[number];

export interface UserMinutesIo {
  readonly monotonicMs: () => number;
  /** Null: each replica counts its own. */
  readonly store: SharedLimits | null;
  readonly onDecided: (by: StoreResult) => void;
}

/** A request that was admitted; `end` gives back what it held. */
export interface Admitted {
  readonly minute: UserMinute;
  readonly counts: MinuteCounts;
}
export type Decision = { readonly refusal: Refusal; readonly counts: MinuteCounts } | Admitted;

/** Requests, tokens and streams of users per minute: over all replicas where there is a store, else here. */
export class UserMinutes {
  readonly #io: UserMinutesIo;
  readonly #users = new Map<string, UserMinute>();
  #listed: UserMinute[] = [];
  #later: NodeJS.Timeout | null = null;
  #soon: NodeJS.Immediate | null = null;
  readonly #renewing: NodeJS.Timeout;

  constructor(io: UserMinutesIo) {
    this.#io = io;
    this.#renewing = setInterval(() => this.#renew(), renewEveryMs).unref();
  }

  get size(): number {
    return this.#users.size;
  }

  /** What keeps a request out whatever it asks for, as far as it is known here already; null: nothing. */
  known(userId: string, limits: Limits): Extract<Decision, { refusal: Refusal }> | null {
    const minute = this.#users.get(userId);
    if (minute === undefined) return null;
    const counts = minute.counts(this.#io.monotonicMs(), false);
    const refusal = minuteRefusal(limits, counts, false);
    return refusal === null ? null : { refusal, counts };
  }

  /** Counts one more request, or says what refuses it. Never rejects. */
  admit(userId: string, limits: Limits, isStream: boolean): Decision | Promise<Decision> {
    const minute = this.#of(userId);
    const nowMs = this.#io.monotonicMs();
    minute.underWay += 1;
    if (isStream) {
      minute.streams += 1;
      minute.sharesStreams = limits.streams !== null;
    }
    const counts = minute.counts(nowMs, isStream);
    const ownStreams = { ...counts, streams: minute.streams - Number(isStream) };
    const refusal = minuteRefusal(limits, ownStreams, isStream);
    if (refusal !== null) return this.#refused(minute, isStream, refusal, counts);
    const { store } = this.#io;
    if (store === null) return this.#alone(minute, limits, isStream, false);
    return this.#ask(store, minute, limits, isStream);
  }

  /** Tokens of an answer that is settled; nothing for users without such limits. */
  spend(userId: string, tokens: number): void {
    if (this.#users.size === 0) return;
    const minute = this.#users.get(userId);
    if (minute === undefined || tokens === 0) return;
    minute.spend(tokens, this.#io.monotonicMs());
    if (this.#io.store !== null) this.#tellLater(minute);
  }

  /** A stream has come to its end: others wait for its place, so the store hears of it in the same turn. */
  endStream(minute: UserMinute): void {
    minute.streams -= 1;
    if (this.#io.store === null || !minute.sharesStreams) return;
    this.#list(minute);
    this.#soon ??= setImmediate(() => this.#tell());
  }

  /** Tells the store what it has not heard, also what it could not be told before. */
  close(): void {
    clearInterval(this.#renewing);
    this.#renew();
  }

  async #ask(store: SharedLimits, minute: UserMinute, limits: Limits, isStream: boolean): Promise<Decision> {
    const sharesStream = isStream && limits.streams !== null;
    const told = minute.tell(sharesStream ? minute.streams : null, this.#io.monotonicMs());
    const answer = await store.admit({ ...told, most: minuteMosts(limits), isStream });
    if (typeof answer === 'string') {
      this.#io.onDecided(answer);
      if (answer === 'unsent') minute.untold(told, this.#io.monotonicMs());
      return this.#alone(minute, limits, isStream, answer === 'unanswered');
    }
    this.#io.onDecided('shared');
    const nowMs = this.#io.monotonicMs();
    minute.hear(answer, sharesStream, nowMs);
    const counts = minute.counts(nowMs, isStream);
    if (answer.refusedBy === null) return { minute, counts };
    // Told meanwhile with other news, it counts there as one that is under way.
    if (sharesStream) this.#tellLater(minute);
    return this.#refused(minute, isStream, refusalBy(answer.refusedBy, limits, counts.leftMs), counts);
  }

  #alone(minute: UserMinute, limits: Limits, isStream: boolean, isTold: boolean): Decision {
    const nowMs = this.#io.monotonicMs();
    const before = minute.counts(nowMs, isStream);
    const refusal = minuteRefusal(limits, before, isStream);
    if (refusal !== null) {
      // The store may have taken the stream for one that is under way.
      if (isTold && isStream) this.#tellLater(minute);
      return this.#refused(minute, isStream, refusal, before);
    }
    minute.admitAlone(nowMs, isTold);
    if (this.#io.store !== null && !isTold) this.#tellLater(minute);
    return { minute, counts: minute.counts(nowMs, isStream) };
  }

  #refused(minute: UserMinute, isStream: boolean, refusal: Refusal, counts: MinuteCounts): Decision {
    minute.underWay -= 1;
    if (isStream) minute.streams -= 1;
    return { refusal, counts };
  }

  #of(userId: string): UserMinute {
    const known = this.#users.get(userId);
    if (known !== undefined) return known;
    if (this.#users.size >= maxUsers) this.#forget(maxUsers * forgottenShare);
    const minute = new UserMinute(userId);
    this.#users.set(userId, minute);
    return minute;
  }

  /** The oldest first, but nobody who has something under way. */
  #forget(count: number): void {
    let left = count;
    for (const [userId, minute] of this.#users) {
      if (minute.underWay > 0) continue;
      this.#users.delete(userId);
      left -= 1;
      if (left <= 0) return;
    }
  }

  #list(minute: UserMinute): void {
    if (minute.isListed) return;
    minute.isListed = true;
    this.#listed.push(minute);
  }

  #tellLater(minute: UserMinute): void {
    this.#list(minute);
    this.#later ??= setTimeout(() => this.#tell(), tellAfterMs).unref();
  }

  #tell(): void {
    clearTimeout(this.#later ?? undefined);
    clearImmediate(this.#soon ?? undefined);
    this.#later = null;
    this.#soon = null;
    const { store } = this.#io;
    const listed = this.#listed;
    this.#listed = [];
    for (const minute of listed) minute.isListed = false;
    for (let at = 0; store !== null && at < listed.length; at += mostTold) {
      this.#tellSome(store, listed.slice(at, at + mostTold));
    }
  }

  #tellSome(store: SharedLimits, minutes: readonly UserMinute[]): void {
    const nowMs = this.#io.monotonicMs();
    const news = minutes.map((minute) => minute.tell(minute.sharesStreams ? minute.streams : null, nowMs));
    // The next admission tells it, or the next look.
    const takeBack = (place: number): void => {
      const untold = news[place];
      if (untold !== undefined) minutes[place]?.untold(untold, this.#io.monotonicMs());
    };
    if (!store.settle(news, takeBack)) for (const place of news.keys()) takeBack(place);
  }

  #renew(): void {
    const nowMs = this.#io.monotonicMs();
    for (const [userId, minute] of this.#users) {
      if (minute.isIdle(nowMs)) this.#users.delete(userId);
      else if (minute.hasNews || (minute.sharesStreams && minute.streams > 0)) this.#list(minute);
    }
    this.#tell();
  }
}
