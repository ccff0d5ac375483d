import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from 'pino';
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
  const keep = async (): Promise<void> => {
    await schemaReady;
    while (!signal.aborted) {
      await maintainPartitions(pool, { retentionDays, nowMs: Date.now() }).then(
        (report) => log.debug({ report }, 'log partitions maintained'),
        (error: unknown) => log.warn({ err: error }, 'log partitions not maintained; next try in an hour'),
      );
      await sleep(everyMs, undefined, { signal, ref: false });
    }
  };
  // Both waits end only by the signal, at shutdown.
  keep().catch(() => undefined);
}
