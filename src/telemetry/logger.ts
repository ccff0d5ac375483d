import type { Logger } from 'pino';
import { pino } from 'pino';

/** JSON lines on stdout. Nothing is logged by default that a client sent; secrets have a type that masks itself. */
export function createLogger(level: string): Logger {
  return pino({
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  });
}
