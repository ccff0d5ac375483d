import type { Server } from 'node:http';
import { Server as Listener } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { usageReadMs } from '../chat/exchange-limits.ts';
import type { Life } from '../http/life.ts';

/** After the grace period, for error events to leave. */
const cutGraceMs = 2_000;
/** For the rows of those whose usage was read to the last moment. */
const lastRowsMs = 1_000;
/** Connections are looked at this often while draining. */
const sweepMs = 100;
/** How often it is looked whether the last rows are settled. */
const pollMs = 20;
/** Of the time for answers: what comes later on a kept connection would hardly have time left for its own. */
const newWorkShare = 1 / 2;

export interface DrainLimits {
  /**
   * How long the listener still accepts after readiness went off, and how long a kept connection may be silent
   * after that: the time in which clients that had no `Connection: close` send their next request, and get it.
   */
  readonly delayMs: number;
  /** How long streams may finish. */
  readonly drainMs: number;
}

/** Takes no more connections, and closes none as Node's HTTP server would; resolves when the last is gone. */
function stopListening(server: Server): Promise<void> {
  return new Promise((resolve) => Listener.prototype.close.call(server, () => resolve()));
}

/**
 * From the signal to the last answer: readiness off, the delay, the listener closed, streams finish or are
 * cut with an error event at the limit. `hurry` (a second signal) skips what is left of both waits. Resolves with the
 * number of chat requests that were cut.
 */
export async function drain(
  app: FastifyInstance,
  life: Life,
  limits: DrainLimits,
  hurry: AbortSignal,
): Promise<number> {
  life.to('draining');
  let accepting = true;
  let quietMs = limits.delayMs;
  const look = () => life.connections.look(performance.now(), quietMs, !accepting);
  look();
  const sweep = setInterval(look, sweepMs);
  const wait = (ms: number) => sleep(ms, undefined, { signal: hurry }).catch(() => undefined);
  if (limits.delayMs > 0) await wait(limits.delayMs);
  accepting = false;
  const gone = stopListening(app.server);
  const newWorkMs = limits.drainMs * newWorkShare;
  await Promise.race([gone, wait(newWorkMs)]);
  life.to('closing');
  await Promise.race([gone, wait(limits.drainMs - newWorkMs)]);
  const cut = life.cutAll();
  life.unread.sent.stop();
  quietMs = 0;
  await Promise.race([gone, sleep(cutGraceMs, undefined, { ref: false })]);
  clearInterval(sweep);
  app.server.closeAllConnections();
  await gone;
  await app.close();
  // Clients may have left with their answers while the usage of these is still being read.
  const settledByMs = performance.now() + usageReadMs + lastRowsMs;
  while (life.unsettled > 0 && performance.now() < settledByMs) await sleep(pollMs);
  return cut;
}
