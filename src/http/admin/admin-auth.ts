import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Clock } from '../../chat/ports.ts';
import type { GatewayError } from '../../core/errors.ts';
import { AuthenticationError, draining } from '../../core/errors.ts';
import { clientNetwork } from '../../core/net/client-network.ts';
import type { Secret } from '../../core/secret/secret.ts';
import { WindowCounter } from '../../limits/window-counter.ts';
import { bearerToken, isSameText } from '../access/bearer-token.ts';
import { peerAddress } from '../access/peer-address.ts';
import { tooManyWrongTokens, wrongTokensPerMinute } from '../access/wrong-tokens.ts';
import type { Asker } from '../audit.ts';
import { askerOf } from '../audit.ts';
import type { HttpTelemetry } from '../http-telemetry.ts';
import type { Life } from '../life.ts';

export interface AdminAuthDeps {
  readonly token: Secret;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly life: Pick<Life, 'phase'>;
  readonly httpTelemetry: Pick<HttpTelemetry, 'authFailed'>;
}

/** Who asked, for the audit. */
export const operatorOf = (request: FastifyRequest): Asker => ({ ...askerOf(request), isOperator: true });

/**
 * Requires `Authorization: Bearer <admin token>` on every route of the scope, before the body is read. A client (an
 * IPv4 address or a /64) that has sent too many wrong ones is refused for the rest of the minute, right token or not.
 */
export function requireAdminToken(scope: FastifyInstance, deps: AdminAuthDeps): void {
  const wrongTokens = new WindowCounter(wrongTokensPerMinute);

  function refusalOf(request: FastifyRequest): GatewayError | undefined {
    // The stores are about to close.
    if (deps.life.phase === 'closing') return draining();
    const client = clientNetwork(peerAddress(request));
    const nowMs = deps.clock.monotonicMs();
    const waitSeconds = wrongTokens.waitFor(client, nowMs);
    if (waitSeconds > 0) {
      deps.httpTelemetry.authFailed('admin_guesses', askerOf(request));
      return tooManyWrongTokens('admin', waitSeconds);
    }
    const { authorization } = request.headers;
    const token = authorization && bearerToken(request.raw.rawHeaders, authorization);
    if (token !== undefined && isSameText(token, deps.token.reveal())) return undefined;
    // Nobody guesses by sending nothing.
    if (authorization !== undefined) wrongTokens.take(client, nowMs);
    deps.httpTelemetry.authFailed('admin_token', askerOf(request));
    return wrongToken();
  }

  scope.addHook('onRequest', (request, reply, done) => {
    reply.header('cache-control', 'no-store');
    done(refusalOf(request));
  });
}

function wrongToken(): AuthenticationError {
  const message = 'Missing or wrong admin token. Send "Authorization: Bearer <admin token>".';
  return new AuthenticationError(message, 'invalid_admin_token');
}
