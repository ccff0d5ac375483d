import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from 'pino';
import { migrate, neededSchemaVersion, schemaVersion } from './migrate.ts';
import { isAway, sqlState } from './pool.ts';

const firstRetryMs = 250;
/** With the migrations it stays within 5 s from the return of Postgres to the first request. */
const longestRetryMs = 2_000;

export interface SchemaGate {
  /** For /readyz, in fixed words: closed until Postgres was reached once with a schema that is new enough. */
  state(): { readonly ready: boolean; readonly reason: string | null };
  /** Resolves when the gate opens; rejects when `signal` fires first. */
  readonly opened: Promise<void>;
}

export interface SchemaGateOptions {
  readonly pool: pg.Pool;
  /** Direct, since migrations hold an advisory lock. */
  readonly directUrl: string;
  readonly migrateAtBoot: boolean;
  readonly log: Pick<Logger, 'warn' | 'info'>;
  /** Aborts at shutdown. */
  readonly signal: AbortSignal;
}

/** What /readyz says of each kind of failure: words of ours, since names, users and addresses are nobody's business. */
const reasonByState: Readonly<Record<string, string>> = {
  '28': 'Postgres refuses the user or the password',
  '3D': 'Postgres does not have the database',
  '42': 'Postgres does not let this user read or change the schema',
  '53': 'Postgres has no connection or memory left',
  '57': 'Postgres is starting or stopping',
};

/** A fixed text per kind of failure; the log has the error itself. */
export function reasonOf(error: unknown): string {
  const state = sqlState(error);
  if (state !== null) return reasonByState[state.slice(0, 2)] ?? 'Postgres answered with an error';
  return isAway(error) ? 'Postgres cannot be reached' : 'Postgres is not ready';
}

async function openOnce({
  pool,
  directUrl,
  migrateAtBoot,
  signal,
}: SchemaGateOptions): Promise<string | null> {
  if (migrateAtBoot) await migrate(directUrl, signal);
  const version = await schemaVersion(pool);
  const needed = neededSchemaVersion();
  return version >= needed
    ? null
    : `schema version is ${version}, ${needed} is needed: run "model-gateway migrate"`;
}

/**
 * Waits for Postgres and its schema in the background, so that a database that starts late delays
 * readiness and nothing else. Once open it stays open: later outages are each request's own affair.
 */
export function openSchemaGate(options: SchemaGateOptions): SchemaGate {
  let ready = false;
  let reason: string | null = 'Postgres has not been reached yet';
  const wait = async (): Promise<void> => {
    for (let delayMs = firstRetryMs; !ready; delayMs = Math.min(delayMs * 2, longestRetryMs)) {
      let cause: unknown;
      try {
        const problem = await openOnce(options);
        ready = problem === null;
        reason = problem;
      } catch (error) {
        options.signal.throwIfAborted();
        reason = reasonOf(error);
        cause = error;
      }
      if (ready) return;
      options.log.warn({ reason, err: cause }, 'waiting for the database');
      await sleep(delayMs, undefined, { signal: options.signal });
    }
  };
  const opened = wait();
  // Whoever does not wait for it must not see its rejection as unhandled.
  opened.catch(() => undefined);
  return { state: () => ({ ready, reason }), opened };
}
