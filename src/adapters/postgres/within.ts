import { setTimeout as sleep } from 'node:timers/promises';

/** Rejects after `timeoutMs`, or when `signal` fires. */
export async function within<T>(work: Promise<T>, timeoutMs: number, signal: AbortSignal): Promise<T> {
  const timer = new AbortController();
  const expiry = sleep(timeoutMs, undefined, { signal: AbortSignal.any([signal, timer.signal]) }).then(() => {
    throw new Error('no answer in time');
  });
  try {
    return await Promise.race([work, expiry]);
  } finally {
    timer.abort();
    expiry.catch(() => {});
    work.catch(() => {});
  }
}
