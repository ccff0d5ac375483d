import type { Logger } from 'pino';
import type { RequestLogOptions } from '../adapters/postgres/request-log-contract.ts';

/** Of one outage. They may take turns (no connection, no answer), and be asked for twice a second. */
const mostReasons = 5;

/**
 * Says why rows do not reach Postgres, each reason once, when they do again, which of the spool cannot be read, and how
 * many only stdout has in the end: no scrape comes after those.
 */
export function requestLogLines(
  log: Pick<Logger, 'info' | 'warn' | 'error'>,
): Pick<RequestLogOptions, 'onAway' | 'onBack' | 'onBrokenSpool' | 'onPrintedAtEnd'> {
  const told = new Set<string>();
  return {
    onBrokenSpool: (path, reason) =>
      log.error({ file: path, reason }, 'spooled rows cannot be read, or their file not be removed'),
    onPrintedAtEnd: (rows) =>
      log.error({ rows }, 'log rows were printed: the process ended before Postgres took them'),
    onAway: (cause) => {
      const reason = cause instanceof Error ? cause.message : String(cause);
      if (told.has(reason) || told.size >= mostReasons) return;
      told.add(reason);
      log.warn({ reason }, 'log rows do not reach Postgres: they wait in the spool');
    },
    onBack: () => {
      told.clear();
      log.info('log rows reach Postgres again');
    },
  };
}
