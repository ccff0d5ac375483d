import { availableParallelism, loadavg } from 'node:os';

/** How many want the cores of this machine beside us. */

/** So many processes want a core each in a run of our own; what is beyond that is others' work. */
const ownPerCore = 2;
/** The count of the kernel may be that of a host with more cores than are ours: it stretches a limit so far only. */
const mostCrowding = 4;

/**
 * How much longer work takes for want of a core: 1 where there are enough, 4 at most. Of the last minute, by the
 * kernel's own count; 1 where it keeps none.
 */
export function crowding(): number {
  const wanted = (loadavg()[0] ?? 0) / availableParallelism() / ownPerCore;
  return Math.min(mostCrowding, Math.max(1, wanted));
}

/** What a limit against hanging becomes on this machine; both in milliseconds. It is no wait, and no promise of ours. */
export function patient(limitMs: number): number {
  return Math.round(limitMs * crowding());
}
