import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from 'pino';
import { SchemaProblem } from './applied-migrations.ts';
import { sqlState } from './pool.ts';
import { sqlStates } from './sql-states.ts';

/** Whoever queues for a strong lock holds up every query behind it: better to step back and queue again. */
export const lockTimeoutMs = 500;
/** So long may others wait for one statement that changes the schema; what takes longer is done without such a lock. */
export const briefStatementMs = 1_000;
/** About a minute of tries, with the pauses between them. */
const lockTries = 40;
const lockPauseMs = 1_000;
/** A lock that did not come in time, a statement that took too long, a deadlock: all of it is undone. */
const againStates = new Set<string>([
  sqlStates.lockNotAvailable,
  sqlStates.queryCanceled,
  sqlStates.deadlockDetected,
]);

export interface BriefWork {
  readonly client: pg.Client;
  readonly log?: Pick<Logger, 'info' | 'warn'> | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs `work` in one transaction for which nobody waits long; again where it did not come to its locks. Rejects with
 * SchemaProblem after a minute of that, and with any other error at once: then the transaction is open and broken.
 */
export async function briefly(
  { client, log, signal }: BriefWork,
  what: string,
  work: () => Promise<unknown>,
  timeoutMs = briefStatementMs,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await client.query(
        `BEGIN; SET LOCAL lock_timeout = ${lockTimeoutMs}; SET LOCAL statement_timeout = ${timeoutMs}`,
      );
      await work();
      await client.query('COMMIT');
      return;
    } catch (cause) {
      if (!againStates.has(sqlState(cause) ?? '')) throw cause;
      await client.query('ROLLBACK');
      if (tries === lockTries)
        throw new SchemaProblem(`${what} did not get its locks in ${tries} tries`, { cause });
      if (tries === 1) log?.warn({ err: cause }, `${what} waits for locks of others`);
      await sleep(lockPauseMs, undefined, { signal });
    }
  }
}
