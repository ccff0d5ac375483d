import type { FastifyRequest } from 'fastify';
import type { Accounts } from '../../chat/ports.ts';
import type { HeldKey } from '../../core/candidate.ts';
import { AuthenticationError } from '../../core/errors.ts';

export type KeyFinder = Pick<Accounts, 'find'>;

/**
 * The caller's provider keys, asked for where they are needed. The request does not carry them: they can be 96 KB, in a
 * copy of their own after each change, and thousands of requests may wait for the rest of their bodies. At hand they
 * are a value.
 */
export function keysOf(
  { serviceKeyHash }: FastifyRequest,
  accounts: KeyFinder,
): readonly HeldKey[] | Promise<readonly HeldKey[]> {
  const found = accounts.find(serviceKeyHash);
  return found instanceof Promise ? found.then(keysIn) : keysIn(found);
}

/** A key that was revoked since its request was let in opens nothing any more. */
function keysIn(found: { readonly keys: readonly HeldKey[] } | null): readonly HeldKey[] {
  if (found === null) throw new AuthenticationError();
  return found.keys;
}
