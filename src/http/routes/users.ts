import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { RegisteredUser } from '../../adapters/postgres/users.ts';
import { registerUserSchema } from '../../core/account-requests.ts';
import { ConflictError } from '../../core/errors.ts';
import type { HttpTelemetry } from '../http-telemetry.ts';
import { askerOf } from '../http-telemetry.ts';
import { parseOrThrow } from '../parse.ts';

export interface UsersDeps {
  /** Throws, or rejects with, 401, 403 or 429. */
  readonly mayRegister: (request: FastifyRequest) => void | Promise<void>;
  readonly httpTelemetry: Pick<HttpTelemetry, 'audited'>;
  /** Null: the address is taken. */
  readonly registerUser: (user: { readonly email: string }) => Promise<RegisteredUser | null>;
}

/** `POST /v1/users` (SPEC 4.1): the one unauthenticated route. */
export function usersRoute(app: FastifyInstance, deps: UsersDeps): void {
  const onRequest: onRequestHookHandler = (request, _reply, done) => {
    const asking = deps.mayRegister(request);
    if (asking instanceof Promise) asking.then(() => done(), done);
    else done();
  };
  // Who may register is settled before the body is read.
  app.post('/v1/users', { onRequest }, async (request, reply) => {
    const { email } = parseOrThrow(registerUserSchema, request.body);
    const user = await deps.registerUser({ email });
    if (user === null) throw new ConflictError('This e-mail address is already registered.', 'email');
    deps.httpTelemetry.audited({ audit: 'user_registered', userId: user.userId }, askerOf(request));
    reply.code(201).header('cache-control', 'no-store');
    return { user_id: user.userId, email: user.email, api_key: user.apiKey, shown_once: true };
  });
}
