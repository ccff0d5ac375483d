import type { Logger } from 'pino';
import type { RequestLogOptions } from '../adapters/postgres/request-log-contract.ts';
import type { OnRefusal, RedisOptions } from '../adapters/redis/connection.ts';
import type { OnCertificates } from '../adapters/system/certificate-files.ts';
import type { Clock } from '../chat/ports.ts';
import { errorWords } from '../core/error-words.ts';
import { redactReason } from '../core/secret/redact.ts';
import { OnceAMinute } from '../once-a-minute.ts';

/** Of one outage. They may take turns (no connection, no answer), and be asked for twice a second. */
const mostReasons = 5;

/**
 * Says why rows do not reach Postgres, each reason once, when they do again, which of the spool cannot be read, and how
 * many only stdout has in the end: no scrape comes after those.
 */
export function requestLogLines(
  log: Pick<Logger, 'info' | 'warn' | 'error'>,
): Pick<
  RequestLogOptions,
  'onAway' | 'onBack' | 'onBrokenSpool' | 'onSpoolFull' | 'onSpoolRefuses' | 'onPrintedAtEnd'
> {
  const told = new Set<string>();
  const isNew = (reason: string): boolean => {
    if (told.has(reason) || told.size >= mostReasons) return false;
    told.add(reason);
    return true;
  };
  return {
    onBrokenSpool: (path, reason) =>
      log.error({ file: path, reason }, 'spooled rows cannot be read, or their file not be removed'),
    onPrintedAtEnd: (rows) =>
      log.error({ rows }, 'log rows were printed: the process ended before Postgres took them'),
    onAway: (cause) => {
      const reason = cause instanceof Error ? cause.message : String(cause);
      if (isNew(reason)) log.warn({ reason }, 'log rows do not reach Postgres: they wait in the spool');
    },
    onSpoolRefuses: (reason) => {
      if (!isNew(`spool: ${reason}`)) return;
      log.error(
        { reason },
        'the disk of the spool takes no rows: they are printed, and chat requests refused',
      );
    },
    onSpoolFull: () => {
      if (isNew('spool: full'))
        log.error('the spool is full: chat requests are refused, or their rows printed (GW_SPOOL_FULL)');
    },
    onBack: () => {
      told.clear();
      log.info('log rows reach Postgres again');
    },
  };
}

/** Says why the start waits for the database, which is looked for every two seconds. */
export function waitingLines(
  log: Pick<Logger, 'warn'>,
  clock: Pick<Clock, 'monotonicMs'>,
): (reason: string, error: unknown) => void {
  const telling = new OnceAMinute(clock.monotonicMs);
  return (reason, error) => {
    const code = String((error as { readonly code?: unknown } | null)?.code ?? '');
    if (!telling.isDue(`${reason} ${code}`)) return;
    const message = redactReason(errorWords(error));
    const more = { ...(code === '' ? {} : { code }), ...(message === reason ? {} : { message }) };
    log.warn({ reason, ...more }, 'waiting for the database');
  };
}

/** Without key changes accounts are trusted for a shorter time, and Postgres is asked more often: one line says why. */
export function listeningLines(log: Logger): (listening: boolean, reason: string | null) => void {
  return (listening, reason) => {
    if (listening) log.info('key changes are received');
    else log.warn({ reason }, 'key changes are not received; accounts are read again within a second');
  };
}

/** The last good ones are used on, until they expire: nothing else says that the new ones never came. */
export function certificateLines(log: Pick<Logger, 'info' | 'error'>, setting: string): OnCertificates {
  return (reason) => {
    if (reason === null) log.info({ setting }, 'renewed certificates are used');
    else
      log.error({ setting, reason }, 'renewed certificates cannot be used: the ones before them are used on');
  };
}

export function redisLines(log: Logger): Pick<RedisOptions, 'onUp' | 'onDown' | 'onCertificates'> {
  const isDown = 'cache store is down; answers are not cached, and each replica counts limits alone';
  return {
    onUp: () => log.info('cache store is up'),
    onDown: (message) => log.warn({ message }, isDown),
    onCertificates: certificateLines(log, 'REDIS_URL'),
  };
}

/** A server that is up and refuses (full, a standby, a user without the right) looks well otherwise. */
export function refusalLine(log: Pick<Logger, 'warn'>, clock: Pick<Clock, 'monotonicMs'>): OnRefusal {
  const telling = new OnceAMinute(clock.monotonicMs);
  return (words) => {
    // Whatever the words: those of two commands differ, and would take turns.
    if (!telling.isDue()) return;
    log.warn(
      { reason: redactReason(words) },
      'cache store refuses commands; answers are not cached, or each replica counts limits alone',
    );
  };
}

/** Whoever owns them gets 503, and nothing else says that the settings are the reason. */
export const unopenedLine =
  (log: Logger) =>
  (rows: number): void =>
    log.error(
      { rows, setting: 'GW_SEALING_KEYS' },
      'stored keys do not open: their sealing key is missing, or has other bytes',
    );
