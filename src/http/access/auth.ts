import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Accounts, Caller, Clock } from '../../chat/ports.ts';
import { hashServiceKey, hasServiceKeyShape, isOfTodaysForm } from '../../core/account/service-key.ts';
import { AuthenticationError } from '../../core/errors.ts';
import { clientNetwork, siteNetwork } from '../../core/net/client-network.ts';
import type { RoutingTables } from '../../core/tables/tables.ts';
import { askerOf } from '../audit.ts';
import type { BodyBudget, EarlyHold } from '../body/body-budget.ts';
import { gatherUnknown } from '../body/early-body.ts';
import type { AuthFailure, HttpTelemetry } from '../http-telemetry.ts';
import { activeLegacyName, markLegacy } from '../legacy.ts';
import { bearerToken } from './bearer-token.ts';
import { peerAddress } from './peer-address.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller, without the keys (`keysOf`); set before the handler of every authenticated route. */
    account: KnownCaller;
    /** SHA-256 of the service key that was sent. */
    serviceKeyHash: string;
  }
}

export type KnownCaller = Omit<Caller, 'keys' | 'readAtMs'>;

/** A body may take half a minute to come; what is here sooner was sent by whoever was let in a moment ago. */
const recentMs = 20;

export interface AuthDeps {
  readonly accounts: Accounts;
  readonly tables: () => RoutingTables;
  readonly clock: Clock;
  readonly bodies: Pick<BodyBudget, 'openEarly'>;
  readonly httpTelemetry: Pick<HttpTelemetry, 'authFailed' | 'authenticated' | 'legacyUsed' | 'within'>;
}

/** Null for what can be no service key. What hashes as a key that was good not long ago is that key. */
function shapeOf(
  token: string,
  hash: string,
  { accounts, tables, clock }: AuthDeps,
): 'current' | 'legacy' | null {
  if (isOfTodaysForm(token) && accounts.remembers(hash)) return 'current';
  return hasServiceKeyShape(token, activeLegacyName(tables(), clock));
}

function openEarly(request: FastifyRequest, { accounts, bodies }: AuthDeps): EarlyHold {
  const { serviceKeyHash } = request;
  return bodies.openEarly(
    serviceKeyHash,
    clientNetwork(peerAddress(request)),
    accounts.remembers(serviceKeyHash),
  );
}

type Done = (error?: Error) => void;

/** Who comes in, as it is found; the error that refuses it otherwise. */
function admit(request: FastifyRequest, account: Caller | null, deps: AuthDeps): Error | undefined {
  if (account === null) {
    const isRevoked = deps.accounts.isRevoked(request.serviceKeyHash);
    return refusal(isRevoked ? 'revoked_key' : 'unknown_key', request, deps);
  }
  if (account.disabled) {
    deps.httpTelemetry.authFailed('user_disabled', askerOf(request));
    return new AuthenticationError('This user is disabled; ask the operator.', 'user_disabled');
  }
  const { userId, serviceKeyId, disabled, residency, limits } = account;
  request.account = { userId, serviceKeyId, disabled, residency, limits };
  return undefined;
}

function refusal(reason: AuthFailure, request: FastifyRequest, deps: AuthDeps): AuthenticationError {
  deps.httpTelemetry.authFailed(reason, askerOf(request));
  return new AuthenticationError();
}

/**
 * Looks again once the body is there: a key that was revoked meanwhile lets nobody in, and what was decided of its user
 * holds for a request that says only now what it wants.
 */
function lookAgain(request: FastifyRequest, done: Done, deps: AuthDeps): void {
  if (deps.clock.monotonicMs() - request.enteredAtMs < recentMs) {
    done();
    return;
  }
  const found = deps.accounts.find(request.serviceKeyHash);
  if (found instanceof Promise) found.then((account) => done(admit(request, account, deps))).catch(done);
  else done(admit(request, found, deps));
}

/**
 * Requires `Authorization: Bearer <service key>` on every route of the scope (SPEC 5), before the body is
 * read, and again behind one that took its time. A warm caller costs a hash and a map look-up.
 */
export function requireServiceKey(scope: FastifyInstance, deps: AuthDeps): void {
  scope.decorateRequest('account');
  scope.decorateRequest('serviceKeyHash', '');
  scope.addHook('onRequest', (request: FastifyRequest, reply: FastifyReply, done) => {
    reply.header('cache-control', 'no-store');
    const { authorization } = request.headers;
    if (authorization === undefined) return done(refusal('missing', request, deps));
    const token = bearerToken(request.raw.rawHeaders, authorization);
    if (token === undefined) return done(refusal('malformed', request, deps));
    request.serviceKeyHash = hashServiceKey(token);
    const shape = shapeOf(token, request.serviceKeyHash, deps);
    if (shape === null) return done(refusal('malformed', request, deps));
    if (shape === 'legacy') {
      markLegacy(reply, deps.tables());
      deps.httpTelemetry.legacyUsed('key');
    }
    const accept = (account: Caller | null): void => {
      const refused = admit(request, account, deps);
      if (refused !== undefined) {
        done(refused);
        return;
      }
      const before = request.trace;
      request.trace = deps.httpTelemetry.authenticated(before);
      if (request.trace === before) done();
      else deps.httpTelemetry.within(request.trace, done);
    };
    const found = deps.accounts.find(request.serviceKeyHash, () => siteNetwork(peerAddress(request)));
    if (found instanceof Promise) {
      gatherUnknown(request, () => openEarly(request, deps));
      // What a watcher throws is this request's error, and not the end of the process.
      found.then(accept).catch(done);
    } else accept(found);
  });
  scope.addHook('preHandler', (request, _reply, done) => lookAgain(request, done, deps));
}
