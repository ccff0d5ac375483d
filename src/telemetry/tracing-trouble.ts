import type { DiagLogger } from '@opentelemetry/api';
import type { Logger } from 'pino';
import type { Clock } from '../chat/ports.ts';
import { redactReason } from '../core/secret/redact.ts';

/** A collector that takes nothing is warned of with each batch, one every five seconds. */
const quietMs = 60_000;

/** What OpenTelemetry is to tell of its trouble: a line a minute says what it is, and how many were left out. */
export function tracingTrouble(log: Pick<Logger, 'warn'>, clock: Pick<Clock, 'monotonicMs'>): DiagLogger {
  let dueMs = Number.NEGATIVE_INFINITY;
  let leftOut = 0;
  const tell = (message: string): void => {
    const nowMs = clock.monotonicMs();
    if (nowMs < dueMs) {
      leftOut += 1;
      return;
    }
    const reason = redactReason(message);
    log.warn({ reason, left_out: leftOut }, 'traces have trouble: spans may be lost');
    dueMs = nowMs + quietMs;
    leftOut = 0;
  };
  const ignore = (): void => undefined;
  return { error: tell, warn: tell, info: ignore, debug: ignore, verbose: ignore };
}
