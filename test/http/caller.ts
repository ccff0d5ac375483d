import type { Caller } from '../../src/chat/ports.ts';

/** Whom a service key belongs to, as authentication hands it on; an operator has decided nothing. */
export function callerOf(userId: string, keys: Caller['keys'] = []): Caller {
  return { userId, keys, serviceKeyId: 's', disabled: false, residency: null, limits: null, readAtMs: 0 };
}
