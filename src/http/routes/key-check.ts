import type { FastifyReply, FastifyRequest } from 'fastify';
import { Cancellation } from '../../chat/cancellation.ts';
import type { KeyCheck, KeyOccasion } from '../../chat/key-check.ts';
import type { Accounts } from '../../chat/ports.ts';
import type { ProviderKeyUse } from '../../core/account/key-verdict.ts';
import { rejectionsInARow } from '../../core/account/key-verdict.ts';
import type { HeldKey } from '../../core/candidate.ts';
import { NotFoundError, ResidencyError } from '../../core/errors.ts';
import { isUserServer } from '../../core/provider-name.ts';
import { residencyAllows, residencyOf, strictestResidency } from '../../core/request/residency.ts';
import type { KeyFinder } from '../access/keys-of.ts';
import { freshAccount, keysOf } from '../access/keys-of.ts';
import type { HttpTelemetry } from '../http-telemetry.ts';
import type { Call, Handlers } from '../mount.ts';

export interface KeyCheckStore {
  /** Throws RateLimitError, or promises to. */
  readonly mayCheckKey: (userId: string) => void | Promise<void>;
  /** The latest rows of the user, newest first. */
  readonly readProviderKeyUses: (userId: string) => Promise<readonly ProviderKeyUse[]>;
}

export interface KeyCheckRouteDeps {
  /** Asks the key's own server; never rejects for what that does. */
  readonly checkKey: (key: HeldKey, occasion: KeyOccasion, signal: Cancellation) => Promise<KeyCheck>;
  readonly accounts: KeyFinder;
  readonly refreshAccount: Accounts['refresh'];
  readonly httpTelemetry: HttpTelemetry;
}

/** The caller's key of this id; keys that another replica registered just now are read past the cache. */
async function heldKey(request: FastifyRequest, keyId: string, deps: KeyCheckRouteDeps): Promise<HeldKey> {
  const isIt = ({ id }: HeldKey): boolean => id === keyId;
  const known = (await keysOf(request, deps.accounts)).find(isIt);
  const key = known ?? (await freshAccount(request, deps.refreshAccount))?.keys.find(isIt);
  if (key === undefined) throw new NotFoundError('No such provider key.');
  return key;
}

/** Where the key's server stands. Throws ResidencyError where the caller's requests may not go there. */
function occasionOf({ provider, declaredRegion }: HeldKey, request: FastifyRequest): KeyOccasion {
  const { account, tables, id: requestId } = request;
  const residency = residencyOf(provider, declaredRegion, tables.indiaRegions);
  const residencyBound = strictestResidency(null, account.residency, tables.residency);
  if (residencyAllows(residencyBound, residency)) return { residency, residencyBound, requestId };
  throw new ResidencyError('The server of this key is outside India, where your requests may not go.');
}

/** Aborted when the client leaves: nobody is asked for nobody. */
function signalOf({ raw }: FastifyReply): Cancellation {
  const signal = new Cancellation();
  if (raw.destroyed) signal.abort('client-gone');
  else raw.once('close', () => signal.abort('client-gone'));
  return signal;
}

/** `POST /v1/keys/{key_id}/check`: what the vendor makes of the key, by the cheapest question that needs one. */
export function keyCheckHandlers(store: KeyCheckStore, deps: KeyCheckRouteDeps): Handlers<'checkKey'> {
  return {
    async checkKey({ params, request, reply }: Call<'checkKey'>) {
      const { userId } = request.account;
      await store.mayCheckKey(userId);
      const key = await heldKey(request, params.key_id, deps);
      const { id, provider } = key;
      if (isUserServer(provider)) request.userFault = 'user_server';
      const occasion = occasionOf(key, request);
      const { residency } = occasion;
      // First, so that no verdict is lost for want of a turn at the database.
      const uses = await store.readProviderKeyUses(userId);
      const { verdict, reason, status, latencyMs } = await deps.checkKey(key, occasion, signalOf(reply));
      deps.httpTelemetry.keyChecked(provider, verdict);
      const rejected_in_a_row = rejectionsInARow(id, uses);
      return { id, provider, residency, verdict, reason, status, latency_ms: latencyMs, rejected_in_a_row };
    },
  };
}
