import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { NamedLimit } from '../adapters/redis/shared-windows.ts';
import { AuthenticationError, HttpRequestError, RateLimitError } from '../core/errors.ts';
import { clientNetwork } from '../core/net/client-network.ts';
import type { Secret } from '../core/secret/secret.ts';

/** The limits are per minute. */
export const registrationWindowMs = 60_000;
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
      this.#windowEndsAtMs = nowMs + registrationWindowMs;
    }
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    return count <= this.#limit ? 0 : Math.ceil((this.#windowEndsAtMs - nowMs) / 1000);
  }
}

/**
 * Counts one registration over all replicas: ms to wait, 0 when every limit has room, null when the store does not
 * say. The first limit that is full keeps the call from counting in the next.
 */
export type SharedRegistrations = (limits: readonly NamedLimit[]) => Promise<number | null>;

function sameText(given: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(hash('sha256', given)), Buffer.from(hash('sha256', expected)));
}

function refuseFor(waitSeconds: number): void {
  if (waitSeconds <= 0) return;
  throw new RateLimitError('Too many registrations; try again later.', {
    headers: { 'retry-after': String(waitSeconds) },
  });
}

/**
 * Who may register, and how often. The returned check throws 401 (after `onWrongToken`), 403 or 429; it promises where
 * a store has to be asked. This replica counts in any case: that is all there is while the store is away, and what
 * this replica refuses costs the store nothing. A client is an IPv4 address or a /64.
 */
export function registrationGuard(
  policy: RegistrationPolicy,
  monotonicMs: () => number,
  onWrongToken: (request: FastifyRequest) => void = () => undefined,
  shared: SharedRegistrations | null = null,
): (request: FastifyRequest) => void | Promise<void> {
  const everybody = new WindowCounter(policy.perMinute);
  const perClient = new WindowCounter(policy.perMinutePerIp);
  const limitsOf = (client: string): readonly NamedLimit[] =>
    [
      { name: client, limit: policy.perMinutePerIp },
      { name: 'all', limit: policy.perMinute },
    ].filter(({ limit }) => limit > 0);
  return (request) => {
    if (policy.mode === 'closed') {
      throw new HttpRequestError(403, 'Registration is closed.', 'registration_closed');
    }
    const given = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if (policy.mode === 'token' && (policy.token === null || !sameText(given, policy.token.reveal()))) {
      onWrongToken(request);
      throw new AuthenticationError('Registration needs "Authorization: Bearer <registration token>".');
    }
    const nowMs = monotonicMs();
    const client = clientNetwork(request.ip);
    // A refused client does not use up what everybody shares.
    refuseFor(perClient.take(client, nowMs) || everybody.take('', nowMs));
    const limits = limitsOf(client);
    if (shared === null || limits.length === 0) return;
    return shared(limits).then((waitMs) => refuseFor(Math.ceil((waitMs ?? 0) / 1000)));
  };
}
