import type pg from 'pg';
import type { Logger } from 'pino';
import { keepDoing } from './keep-doing.ts';
import { maintainPartitions } from './partitions.ts';

const everyMs = 3_600_000;

/** Makes partitions ahead and drops those past retention: once the schema is there, then hourly. */
export function keepPartitions(
  pool: pg.Pool,
  schemaReady: Promise<void>,
  retentionDays: number,
  log: Logger,
  signal: AbortSignal,
): void {
  keepDoing(schemaReady, everyMs, signal, () =>
    maintainPartitions(pool, { retentionDays, nowMs: Date.now() }).then(
      (report) => log.debug({ report }, 'log partitions maintained'),
      (error: unknown) => log.warn({ err: error }, 'log partitions not maintained; next try in an hour'),
    ),
  );
}
