import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { RegisteredUser } from '../../adapters/postgres/users.ts';
import { registerUserSchema } from '../../core/account-requests.ts';
import { parseOrThrow } from '../parse.ts';

export interface UsersIo {
  readonly mayRegister: (request: FastifyRequest) => void;
  readonly registerUser: (user: { readonly email: string }) => Promise<RegisteredUser>;
}

/** `POST /v1/users` (SPEC 4.1): the one unauthenticated route. */
export function usersRoute(app: FastifyInstance, io: UsersIo): void {
  const onRequest: onRequestHookHandler = (request, _reply, done) => {
    io.mayRegister(request);
    done();
  };
  // Who may register is settled before the body is read.
  app.post('/v1/users', { onRequest }, async (request, reply) => {
    const { email } = parseOrThrow(registerUserSchema, request.body);
    const user = await io.registerUser({ email });
    reply.code(201).header('cache-control', 'no-store');
    return { user_id: user.userId, email: user.email, api_key: user.apiKey, shown_once: true };
  });
}
