import type { FastifyRequest, onRequestHookHandler } from 'fastify';
import type { RegisteredUser } from '../../adapters/postgres/users.ts';
import { ConflictError } from '../../core/errors.ts';
import type { Asker, HttpTelemetry } from '../http-telemetry.ts';
import { askerOf } from '../http-telemetry.ts';
import type { Answer, Handlers } from '../mount.ts';

export interface UsersDeps {
  /** Throws, or rejects with, 401, 403 or 429. */
  readonly mayRegister: (request: FastifyRequest) => void | Promise<void>;
  readonly httpTelemetry: Pick<HttpTelemetry, 'audited'>;
  /** Null: the address is taken. */
  readonly registerUser: (user: { readonly email: string }) => Promise<RegisteredUser | null>;
}

/** Settles who may register before the body is read. */
export function registrationHook({ mayRegister }: Pick<UsersDeps, 'mayRegister'>): onRequestHookHandler {
  return (request, _reply, done) => {
    const asking = mayRegister(request);
    if (asking instanceof Promise) asking.then(() => done(), done);
    else done();
  };
}

/** Registers a user and says so to the audit. Throws ConflictError for an address that is taken. */
export async function register(
  deps: Omit<UsersDeps, 'mayRegister'>,
  user: { readonly email: string },
  asker: Asker,
): Promise<Answer<'registerUser'>> {
  const registered = await deps.registerUser(user);
  if (registered === null) throw new ConflictError('This e-mail address is already registered.', 'email');
  const { userId, email, apiKey } = registered;
  deps.httpTelemetry.audited({ audit: 'user_registered', userId }, asker);
  return { user_id: userId, email, api_key: apiKey, shown_once: true };
}

/** `POST /v1/users` (SPEC 4.1): the one unauthenticated route. */
export function usersHandlers(deps: UsersDeps): Handlers<'registerUser'> {
  return {
    registerUser({ body, request, reply }) {
      reply.header('cache-control', 'no-store');
      return register(deps, body, askerOf(request));
    },
  };
}
