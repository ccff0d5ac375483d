import type { DiagLogger } from '@opentelemetry/api';
import type { Logger } from 'pino';
import type { Clock } from '../chat/ports.ts';
import { redactReason } from '../core/secret/redact.ts';
import { OnceAMinute } from '../once-a-minute.ts';

/**
 * What OpenTelemetry is to tell of its trouble, which a collector that takes nothing gives it with each batch, one
 * every five seconds: a line a minute says what it is, and how many were left out.
 */
export function tracingTrouble(log: Pick<Logger, 'warn'>, clock: Pick<Clock, 'monotonicMs'>): DiagLogger {
  const telling = new OnceAMinute(clock.monotonicMs);
  let leftOut = 0;
  const tell = (message: string): void => {
    if (!telling.isDue()) {
      leftOut += 1;
      return;
    }
    const reason = redactReason(message);
    log.warn({ reason, left_out: leftOut }, 'traces have trouble: spans may be lost');
    leftOut = 0;
  };
  const ignore = (): void => undefined;
  return { error: tell, warn: tell, info: ignore, debug: ignore, verbose: ignore };
}
