import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Life } from './http/life.ts';

/** After the grace period, for error events to leave and rows to be written. */
const cutGraceMs = 2_000;
/** Keep-alive connections whose last answer has left are closed this often while draining. */
const sweepMs = 100;
/** How often it is looked whether the last rows are settled. */
const pollMs = 20;

export interface DrainLimits {
  /** How long the listener still accepts after readiness went off. */
  readonly delayMs: number;
  /** How long streams may finish. */
  readonly drainMs: number;
}

/**
 * From the signal to the last answer: readiness off, the delay, the listener closed, streams finish or are
 * cut with an error event at the limit. `hurry` (a second signal) skips what is left of both waits.
 */
export async function drain(
  app: FastifyInstance,
  life: Life,
  limits: DrainLimits,
  hurry: AbortSignal,
): Promise<void> {
  life.draining = true;
  const wait = (ms: number) => sleep(ms, undefined, { signal: hurry }).catch(() => undefined);
  if (limits.delayMs > 0) await wait(limits.delayMs);
  life.closing = true;
  const sweep = setInterval(() => app.server.closeIdleConnections(), sweepMs);
  const closed = app.close();
  await Promise.race([closed, wait(limits.drainMs)]);
  life.cutAll();
  await Promise.race([closed, sleep(cutGraceMs, undefined, { ref: false })]);
  app.server.closeAllConnections();
  clearInterval(sweep);
  await closed;
  // Clients may have left with their answers while the usage of these is still being read (2 s at most).
  for (let waitedMs = 0; life.unsettled > 0 && waitedMs < cutGraceMs; waitedMs += pollMs) await sleep(pollMs);
}
