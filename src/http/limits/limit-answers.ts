import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { RefusingLimit } from '../../core/limits/limit-table.ts';
import { rateLimitHeaders } from '../../core/limits/minute.ts';
import { limitError } from '../../core/limits/refusal.ts';
import type { Limits } from '../../core/limits/user-limits.ts';
import { limitsOf } from '../../core/limits/user-limits.ts';
import type { Admission, LimitGate, Refused } from '../../limits/limit-gate.ts';

/** What limits of users say over HTTP: the 429 of what refuses, and on other answers how much is left. */
export class LimitAnswers {
  readonly #gate: Pick<LimitGate, 'known' | 'admit' | 'hold'>;
  readonly #onRefused: (limit: RefusingLimit) => void;

  constructor(gate: Pick<LimitGate, 'known' | 'admit' | 'hold'>, onRefused: (limit: RefusingLimit) => void) {
    this.#gate = gate;
    this.#onRefused = onRefused;
  }

  /**
   * Refuses a request before its body is read where that is known already, so that whoever goes on asking costs next
   * to nothing.
   */
  readonly refuseEarly: onRequestHookHandler = (request, _reply, done) => {
    const limits = limitsOf(request.tables.userLimits, request.account.limits);
    if (limits === null) return done();
    const refused = this.#gate.known(request.account.userId, limits);
    return done(refused === null ? undefined : this.#error(refused, limits));
  };

  /**
   * Counts a request whose body is well-formed and says on its answer how much is left; null: nothing is counted.
   * Throws RateLimitError.
   */
  async admit(
    limits: Limits,
    request: FastifyRequest,
    reply: FastifyReply,
    isStream: boolean,
  ): Promise<Admission | null> {
    const decision = await this.#gate.admit(request.account.userId, limits, isStream);
    if (decision === null) return null;
    if ('refusal' in decision) throw this.#error(decision, limits);
    reply.headers(rateLimitHeaders(limits, decision.counts));
    const admission = this.#gate.hold(decision, isStream);
    reply.raw.on('close', () => admission.endStream());
    if (reply.raw.destroyed) admission.endStream();
    return admission;
  }

  #error({ refusal, counts }: Refused, limits: Limits): Error {
    this.#onRefused(refusal.limit);
    return limitError(refusal, counts === null ? {} : rateLimitHeaders(limits, counts));
  }
}
