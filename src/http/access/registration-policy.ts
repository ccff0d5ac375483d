import type { FastifyRequest } from 'fastify';
import { AuthenticationError, HttpRequestError, RateLimitError } from '../../core/errors.ts';
import { clientNetwork } from '../../core/net/client-network.ts';
import { classifyAddress } from '../../core/net/ip-class.ts';
import type { Secret } from '../../core/secret/secret.ts';
import type { NamedLimit, SharedCount } from '../../limits/ports.ts';
import { WindowCounter } from '../../limits/window-counter.ts';
import { bearerToken, isSameText } from './bearer-token.ts';
import { peerAddress } from './peer-address.ts';
import { tooManyWrongTokens, wrongTokensPerMinute } from './wrong-tokens.ts';

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

/** A proxy that is not believed, a node or a bridge: all who come through it have its address. */
function mayStandForMany(client: string): boolean {
  return classifyAddress(client.split('/')[0] ?? '') !== 'public';
}

/**
 * Who may register, and how often. The returned check throws 401 or, after too many wrong tokens of a client, 429 (both
 * after `onWrongToken`), 403, or 429 for too many registrations; it promises where a store has to be asked. This
 * replica counts in any case: that is all there is while the store is away, and what this replica refuses costs the
 * store nothing. Wrong tokens it counts alone. A client is an IPv4 address or a /64.
 */
export function registrationGuard(
  policy: RegistrationPolicy,
  monotonicMs: () => number,
  onWrongToken: (request: FastifyRequest) => void = () => undefined,
  shared: SharedCount | null = null,
): (request: FastifyRequest) => void | Promise<void> {
  const wrongTokens = new WindowCounter(wrongTokensPerMinute);
  const everybody = new WindowCounter(policy.perMinute);
  const perClient = new WindowCounter(policy.perMinutePerIp);
  const limitsOf = (client: string): readonly NamedLimit[] =>
    [
      { name: client, limit: policy.perMinutePerIp },
      { name: 'all', limit: policy.perMinute },
    ].filter(({ limit }) => limit > 0);

  function requireToken(request: FastifyRequest, client: string, nowMs: number): void {
    const waitSeconds = wrongTokens.waitFor(client, nowMs);
    const { authorization } = request.headers;
    const given = authorization && bearerToken(request.raw.rawHeaders, authorization);
    const isRight = given !== undefined && policy.token !== null && isSameText(given, policy.token.reveal());
    // A stranger's guesses from there must not keep out the operator, who has the same address.
    if (isRight && (waitSeconds === 0 || mayStandForMany(client))) return;
    onWrongToken(request);
    if (waitSeconds > 0) throw tooManyWrongTokens('registration', waitSeconds);
    // Nobody guesses by sending nothing.
    if (authorization !== undefined) wrongTokens.take(client, nowMs);
    const message = 'Registration needs "Authorization: Bearer <registration token>".';
    throw new AuthenticationError(message, 'invalid_registration_token');
  }

  return (request) => {
    if (policy.mode === 'closed') {
      throw new HttpRequestError(403, 'Registration is closed.', 'registration_closed');
    }
    const nowMs = monotonicMs();
    const client = clientNetwork(peerAddress(request));
    if (policy.mode === 'token') requireToken(request, client, nowMs);
    // A refused client does not use up what everybody shares.
    refuseFor(perClient.take(client, nowMs) || everybody.take('', nowMs));
    const limits = limitsOf(client);
    if (shared === null || limits.length === 0) return;
    return shared(limits).then((waitMs) => refuseFor(Math.ceil((waitMs ?? 0) / 1000)));
  };
}
