import { setTimeout as delay } from 'node:timers/promises';
import { StartError } from './start-error.ts';

/** The first start makes the schema; that takes well under a second. */
const TIMEOUT_MS = 60_000;
const CALL_TIMEOUT_MS = 5_000;
const POLL_MS = 20;

/** Resolves once /readyz says yes: the gateway reaches its database in the background. Throws StartError. */
export async function waitUntilReady(adminUrl: string, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + TIMEOUT_MS;
  for (;;) {
    const response = await fetch(new URL('/readyz', adminUrl), {
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    });
    const body = await response.text();
    if (response.ok) return;
    if (Date.now() > deadline) throw new StartError(`The gateway does not become ready: ${body}`);
    await delay(POLL_MS, undefined, { signal });
  }
}
