import type { FastifyRequest, onRequestHookHandler } from 'fastify';
import type { RegisteredUser } from '../../adapters/postgres/users.ts';
import { ConflictError } from '../../core/errors.ts';
import { registeredUser } from '../admin/operator-records.ts';
import type { Asker, Audit } from '../audit.ts';
import { askerOf } from '../audit.ts';
import type { Handlers, RouteAnswer } from '../mount.ts';

export interface UserStore {
  /** Null: the address is taken. */
  readonly registerUser: (user: { readonly email: string }) => Promise<RegisteredUser | null>;
}

/** Throws, or rejects with, 401, 403 or 429. */
export type MayRegister = (request: FastifyRequest) => void | Promise<void>;

/** Settles who may register before the body is read. */
export function registrationHook(mayRegister: MayRegister): onRequestHookHandler {
  return (request, _reply, done) => {
    const asking = mayRegister(request);
    if (asking instanceof Promise) asking.then(() => done(), done);
    else done();
  };
}

/** Registers a user and says so to the audit. Throws ConflictError for an address that is taken. */
export async function register(
  store: UserStore,
  audit: Audit,
  user: { readonly email: string },
  asker: Asker,
): Promise<RouteAnswer<'registerUser'>> {
  const registered = await store.registerUser(user);
  if (registered === null) throw new ConflictError('This e-mail address is already registered.', 'email');
  audit.audited({ audit: 'user_registered', userId: registered.userId }, asker);
  return registeredUser(registered);
}

/** `POST /v1/users` (SPEC 4.1): the one unauthenticated route. */
export function usersHandlers(store: UserStore, audit: Audit): Handlers<'registerUser'> {
  return {
    registerUser({ body, request, reply }) {
      reply.header('cache-control', 'no-store');
      return register(store, audit, body, askerOf(request));
    },
  };
}
