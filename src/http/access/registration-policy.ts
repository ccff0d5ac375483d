import type { FastifyRequest } from 'fastify';
import type { NamedLimit } from '../../adapters/redis/shared-windows.ts';
import { AuthenticationError, HttpRequestError, RateLimitError } from '../../core/errors.ts';
import { clientNetwork } from '../../core/net/client-network.ts';
import type { Secret } from '../../core/secret/secret.ts';
import type { SharedCount } from '../limits/window-counter.ts';
import { WindowCounter } from '../limits/window-counter.ts';
import { isSameText } from './bearer-token.ts';

export interface RegistrationPolicy {
  readonly mode: 'open' | 'token' | 'closed';
  readonly token: Secret | null;
  /** Per minute; 0: no limit. */
  readonly perMinute: number;
  readonly perMinutePerIp: number;
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
  shared: SharedCount | null = null,
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
    if (policy.mode === 'token' && (policy.token === null || !isSameText(given, policy.token.reveal()))) {
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
