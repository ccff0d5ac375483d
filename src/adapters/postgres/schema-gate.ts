import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { SchemaState } from './applied-migrations.ts';
import { compareSchema, readApplied, SchemaProblem } from './applied-migrations.ts';
import { lockHeldReason, migrate } from './migrate.ts';
import { readMigrations } from './migration-files.ts';
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
  /** Told of each look that found no usable schema, with the words for /readyz and what was thrown. */
  readonly onWaiting: (reason: string, error: unknown) => void;
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

/** A fixed text per kind of failure; the log has the error itself. Migrations are named: every copy of us has them. */
function reasonOf(error: unknown): string {
  if (error instanceof SchemaProblem) return error.message;
  const state = sqlState(error);
  if (state !== null) return reasonByState[state.slice(0, 2)] ?? 'Postgres answered with an error';
  return isAway(error) ? 'Postgres cannot be reached' : 'Postgres is not ready';
}

/** Throws SchemaProblem. */
async function lookAtSchema(options: SchemaGateOptions, onHeld: () => void): Promise<SchemaState> {
  const { pool, directUrl, migrateAtBoot, log, signal } = options;
  if (migrateAtBoot) return await migrate(directUrl, { log, signal, onHeld });
  const migrations = readMigrations();
  const state = compareSchema(await readApplied(pool), migrations);
  if (state.missing.length === 0) return state;
  const version = migrations.length - state.missing.length;
  throw new SchemaProblem(
    `schema version is ${version}, ${migrations.length} is needed: run "model-gateway migrate"`,
  );
}

/**
 * Waits for Postgres and its schema in the background, so that a database that starts late delays
 * readiness and nothing else. Once open it stays open: later outages are each request's own affair. It never opens on a
 * schema that this release must not work with, and says why.
 */
export function openSchemaGate(options: SchemaGateOptions): SchemaGate {
  let ready = false;
  let reason: string | null = 'Postgres has not been reached yet';
  const onHeld = (): void => {
    reason = lockHeldReason;
    options.onWaiting(reason, new SchemaProblem(reason));
  };
  const wait = async (): Promise<void> => {
    for (let delayMs = firstRetryMs; !ready; delayMs = Math.min(delayMs * 2, longestRetryMs)) {
      try {
        const { newer } = await lookAtSchema(options, onHeld);
        if (newer.length > 0)
          options.log.warn(
            { migrations: newer },
            'a newer release has migrated the database; this one works on',
          );
        ready = true;
        reason = null;
      } catch (error) {
        options.signal.throwIfAborted();
        reason = reasonOf(error);
        options.onWaiting(reason, error);
        await sleep(delayMs, undefined, { signal: options.signal });
      }
    }
  };
  const opened = wait();
  // Whoever does not wait for it must not see its rejection as unhandled.
  opened.catch(() => undefined);
  return { state: () => ({ ready, reason }), opened };
}
