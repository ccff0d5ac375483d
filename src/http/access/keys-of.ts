import type { FastifyRequest } from 'fastify';
import type { Account, Accounts } from '../../chat/ports.ts';
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

/**
 * The account as it is in the database now, for keys that another replica registered a moment ago. Null where there is
 * none, and where an operator has decided otherwise of it since the request was let in: its new keys are not for a
 * request that goes by what held before.
 */
export async function freshAccount(
  { account, serviceKeyHash }: FastifyRequest,
  refresh: Accounts['refresh'],
): Promise<Account | null> {
  const fresh = await refresh(serviceKeyHash);
  if (fresh === null || fresh.disabled || fresh.residency !== account.residency) return null;
  return fresh;
}
