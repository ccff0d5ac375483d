import type { FastifyRequest, onRequestHookHandler } from 'fastify';
import type { RegisteredUser } from '../../adapters/postgres/users.ts';
import { ConflictError } from '../../core/errors.ts';
import type { HttpTelemetry } from '../http-telemetry.ts';
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

/** `POST /v1/users` (SPEC 4.1): the one unauthenticated route. */
export function usersHandlers(deps: UsersDeps): Handlers<'registerUser'> {
  return {
    async registerUser({ body: { email }, request, reply }): Promise<Answer<'registerUser'>> {
      const user = await deps.registerUser({ email });
      if (user === null) throw new ConflictError('This e-mail address is already registered.', 'email');
      deps.httpTelemetry.audited({ audit: 'user_registered', userId: user.userId }, askerOf(request));
      reply.header('cache-control', 'no-store');
      return { user_id: user.userId, email: user.email, api_key: user.apiKey, shown_once: true };
    },
  };
}
