import { setTimeout as delay } from 'node:timers/promises';
import { StartError } from './start-error.ts';

/** The first start makes the schema; that takes well under a second. */
const timeoutMs = 60_000;
const callTimeoutMs = 5_000;
const pollMs = 20;

/** Resolves once /readyz says yes: the gateway reaches its database in the background. Throws StartError. */
export async function waitUntilReady(adminUrl: string, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const response = await fetch(new URL('/readyz', adminUrl), {
      signal: AbortSignal.timeout(callTimeoutMs),
    });
    const body = await response.text();
    if (response.ok) return;
    if (Date.now() > deadline) throw new StartError(`The gateway does not become ready: ${body}`);
    await delay(pollMs, undefined, { signal });
  }
}
