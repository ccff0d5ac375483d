import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { costMicroUsd } from '../../core/answer/cost.ts';
import type { CutAnswer } from '../../core/answer/estimated-usage.ts';
import { estimatedUsage } from '../../core/answer/estimated-usage.ts';
import { hasBudget } from '../../core/limits/budget.ts';
import type { RefusingLimit } from '../../core/limits/limit-table.ts';
import type { MinuteCounts } from '../../core/limits/minute.ts';
import { countsMinutes, rateLimitHeaders } from '../../core/limits/minute.ts';
import type { Refusal } from '../../core/limits/refusal.ts';
import { limitError } from '../../core/limits/refusal.ts';
import type { Limits } from '../../core/limits/user-limits.ts';
import { limitsOf } from '../../core/limits/user-limits.ts';
import type { SettledRequest } from '../../core/settled-request.ts';
import type { Budgets } from './budgets.ts';
import type { UserMinute } from './user-minute.ts';
import type { UserMinutes } from './user-minutes.ts';

/** A request that was admitted under limits. */
export interface LimitedRequest {
  /** The client has its answer, or has left: the place of a stream is free. Again: nothing. */
  endStream(): void;
  /** The request is settled. */
  end(): void;
}

/** Holds back what is beyond the limits of its user. Whoever has none never comes here. */
export class LimitGate {
  readonly #minutes: UserMinutes;
  /** Null: there is no database, and no sums. */
  readonly #budgets: Budgets | null;
  readonly #onRefused: (limit: RefusingLimit) => void;

  constructor(minutes: UserMinutes, budgets: Budgets | null, onRefused: (limit: RefusingLimit) => void) {
    this.#minutes = minutes;
    this.#budgets = budgets;
    this.#onRefused = onRefused;
  }

  /**
   * Refuses a request before its body is read where that is known already, so that whoever goes on asking costs next
   * to nothing.
   */
  readonly refuseEarly: onRequestHookHandler = (request: FastifyRequest, _reply, done) => {
    const limits = limitsOf(request.tables.userLimits, request.account.limits);
    if (limits === null) return done();
    const { userId } = request.account;
    const known = this.#minutes.known(userId, limits);
    if (known !== null) return done(this.#error(known.refusal, limits, known.counts));
    const refusal = hasBudget(limits) ? (this.#budgets?.known(userId, limits) ?? null) : null;
    return done(refusal === null ? undefined : this.#error(refusal, limits, null));
  };

  /** Counts a request whose body is well-formed and says on its answer how much is left. Throws RateLimitError. */
  async admit(limits: Limits, request: FastifyRequest, reply: FastifyReply, isStream: boolean) {
    const { userId } = request.account;
    if (hasBudget(limits) && this.#budgets !== null) {
      const refusal = await this.#budgets.check(userId, limits);
      if (refusal !== null) throw this.#error(refusal, limits, null);
    }
    if (!countsMinutes(limits)) return null;
    const decision = await this.#minutes.admit(userId, limits, isStream);
    if ('refusal' in decision) throw this.#error(decision.refusal, limits, decision.counts);
    reply.headers(rateLimitHeaders(limits, decision.counts));
    const admitted = new Admission(this.#minutes, decision.minute, isStream);
    reply.raw.on('close', () => admitted.endStream());
    if (reply.raw.destroyed) admitted.endStream();
    return admitted;
  }

  /** What became of a request, of any user. Stored answers cost nothing, and their tokens are nobody's. */
  settled(settled: SettledRequest): void {
    const { userId, usage, cutAnswer, costMicroUsd, cachedFrom } = settled;
    if (cachedFrom !== null) return;
    this.#budgets?.spend(userId, costMicroUsd);
    if (cutAnswer === null) this.#minutes.spend(userId, usage.inputTokens + usage.outputTokens);
    else this.#guess(settled, cutAnswer);
  }

  /** Of an answer that was cut the limits take what it may have used up: no row will ever say. */
  #guess({ userId, usage, costMicroUsd: stated, candidates }: SettledRequest, cut: CutAnswer): void {
    const guessed = estimatedUsage(usage, cut);
    this.#minutes.spend(userId, guessed.inputTokens + guessed.outputTokens);
    const last = candidates.at(-1);
    const price = last?.kind === 'tried' ? last.candidate.price : null;
    this.#budgets?.guess(userId, costMicroUsd(guessed, price) - stated);
  }

  /** Users known here who have reached a share of a budget. */
  reached(): ReturnType<Budgets['reached']> | null {
    return this.#budgets?.reached() ?? null;
  }

  close(): void {
    this.#minutes.close();
  }

  #error(refusal: Refusal, limits: Limits, counts: MinuteCounts | null): Error {
    this.#onRefused(refusal.limit);
    return limitError(refusal, counts === null ? {} : rateLimitHeaders(limits, counts));
  }
}

class Admission implements LimitedRequest {
  readonly #minutes: UserMinutes;
  readonly #minute: UserMinute;
  #holdsStream: boolean;

  constructor(minutes: UserMinutes, minute: UserMinute, isStream: boolean) {
    this.#minutes = minutes;
    this.#minute = minute;
    this.#holdsStream = isStream;
  }

  endStream(): void {
    if (!this.#holdsStream) return;
    this.#holdsStream = false;
    this.#minutes.endStream(this.#minute);
  }

  end(): void {
    this.endStream();
    this.#minute.underWay -= 1;
  }
}
