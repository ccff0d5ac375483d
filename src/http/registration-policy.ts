import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { AuthenticationError, HttpRequestError, RateLimitError } from '../core/errors.ts';
import type { Secret } from '../core/secret.ts';

const windowMs = 60_000;
/** Client addresses remembered within one window; beyond it the global limit still holds. */
const maxAddresses = 100_000;

export interface RegistrationPolicy {
  readonly mode: 'open' | 'token' | 'closed';
  readonly token: Secret | null;
  /** Per minute; 0: no limit. */
  readonly perMinute: number;
  readonly perMinutePerIp: number;
}

/** Counts per window of one minute. */
class WindowCounter {
  readonly #limit: number;
  readonly #counts = new LRUCache<string, number>({ max: maxAddresses });
  #windowEndsAtMs = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Seconds to wait, or 0 when the call is within the limit. */
  take(name: string, nowMs: number): number {
    if (this.#limit === 0) return 0;
    if (nowMs >= this.#windowEndsAtMs) {
      this.#counts.clear();
      this.#windowEndsAtMs = nowMs + windowMs;
    }
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    return count <= this.#limit ? 0 : Math.ceil((this.#windowEndsAtMs - nowMs) / 1000);
  }
}

function sameText(given: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(hash('sha256', given)), Buffer.from(hash('sha256', expected)));
}

/** Who may register, and how often. The returned check throws 401 (after `onWrongToken`), 403 or 429. */
export function registrationGuard(
  policy: RegistrationPolicy,
  monotonicMs: () => number,
  onWrongToken: () => void = () => undefined,
): (request: FastifyRequest) => void {
  const everybody = new WindowCounter(policy.perMinute);
  const perAddress = new WindowCounter(policy.perMinutePerIp);
  return (request) => {
    if (policy.mode === 'closed') {
      throw new HttpRequestError(403, 'Registration is closed.', 'registration_closed');
    }
    const given = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if (policy.mode === 'token' && (policy.token === null || !sameText(given, policy.token.reveal()))) {
      onWrongToken();
      throw new AuthenticationError('Registration needs "Authorization: Bearer <registration token>".');
    }
    const nowMs = monotonicMs();
    // A refused address does not use up what everybody shares.
    const waitSeconds = perAddress.take(request.ip, nowMs) || everybody.take('', nowMs);
    if (waitSeconds > 0) {
      throw new RateLimitError('Too many registrations; try again later.', {
        headers: { 'retry-after': String(waitSeconds) },
      });
    }
  };
}
