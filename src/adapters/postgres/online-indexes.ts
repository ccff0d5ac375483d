import type pg from 'pg';
import type { Logger } from 'pino';
import { advisoryLocks } from './advisory-locks.ts';
import type { BriefWork } from './brief-transaction.ts';
import { briefly } from './brief-transaction.ts';
import { keepDoing } from './keep-doing.ts';
import { withOwnClient } from './own-client.ts';
import { sqlState } from './pool.ts';
import { sqlStates } from './sql-states.ts';

/** An index of a partitioned table that has rows: built beside writers, a partition at a time. */
export interface OnlineIndex {
  /** Begins with the table's name. */
  readonly name: string;
  readonly table: string;
  /** What stands behind the table in CREATE INDEX. */
  readonly columns: string;
}

/** Those of this release, for good: one that is valid is left alone. Code works without them, and is slower. */
export const onlineIndexes: readonly OnlineIndex[] = [];

/** Where the one who builds dies, another goes on this much later. */
const everyMs = 3_600_000;

const isValidSql = 'SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass($1)';

/** Null: there is none. */
async function isValid(db: Pick<pg.ClientBase, 'query'>, index: string): Promise<boolean | null> {
  return (await db.query<{ valid: boolean }>(isValidSql, [index])).rows[0]?.valid ?? null;
}

const lackingSql = `
  SELECT partition.inhrelid::regclass::text AS name FROM pg_inherits AS partition
  WHERE partition.inhparent = to_regclass($1) AND NOT EXISTS (
    SELECT FROM pg_inherits AS child JOIN pg_index ON indexrelid = child.inhrelid
    WHERE child.inhparent = to_regclass($2) AND indrelid = partition.inhrelid)
  ORDER BY name DESC`;

/** One that a killed build left is not valid, and is made anew. Nothing here keeps readers or writers out. */
async function buildOne(work: BriefWork, index: OnlineIndex, partition: string): Promise<void> {
  const { client } = work;
  const child = partition + index.name.slice(index.table.length);
  const valid = await isValid(client, child);
  if (valid === false) await client.query(`DROP INDEX CONCURRENTLY ${child}`);
  if (valid !== true)
    await client.query(`CREATE INDEX CONCURRENTLY ${child} ON ${partition} ${index.columns}`);
  await briefly(work, `index ${child}`, () =>
    client.query(`ALTER INDEX ${index.name} ATTACH PARTITION ${child}`),
  );
}

async function build(work: BriefWork, index: OnlineIndex): Promise<void> {
  const { client, log } = work;
  const { name, table, columns } = index;
  // Of the parent alone, which has no rows; partitions made from now on inherit it.
  await briefly(work, `index ${name}`, () =>
    client.query(`CREATE INDEX IF NOT EXISTS ${name} ON ONLY ${table} ${columns}`),
  );
  const { rows } = await client.query<{ name: string }>(lackingSql, [table, name]);
  for (const [at, partition] of rows.entries()) {
    try {
      await buildOne(work, index, partition.name);
    } catch (error) {
      // Else retention dropped the partition meanwhile.
      if (sqlState(error) !== sqlStates.undefinedTable) throw error;
    }
    log?.info(
      { index: name, partition: partition.name, done: at + 1, of: rows.length },
      'index built online',
    );
  }
}

/**
 * Builds what is missing, while rows come and go. Any number of replicas may run it, one works; after a kill the next
 * one goes on. `databaseUrl` is a direct connection. Rejects when Postgres is away; with SchemaProblem where a lock did
 * not come within a minute.
 */
export async function buildOnlineIndexes(
  databaseUrl: string,
  indexes: readonly OnlineIndex[],
  { log, signal }: Omit<BriefWork, 'client'> = {},
): Promise<void> {
  if (indexes.length === 0) return;
  await withOwnClient(databaseUrl, 'indexes', signal, async (client) => {
    // A build takes as long as it takes: it waits for transactions of others, who do not wait for it.
    await client.query('SET statement_timeout = 0; SET lock_timeout = 0');
    const { rows } = await client.query<{ held: boolean }>('SELECT pg_try_advisory_lock($1) AS held', [
      advisoryLocks.onlineIndexes,
    ]);
    if (rows[0]?.held !== true) return;
    for (const index of indexes)
      if ((await isValid(client, index.name)) !== true) await build({ client, log, signal }, index);
  });
}

/** Builds them once the schema is there, and looks every hour whether all are there. */
export function keepOnlineIndexes(
  databaseUrl: string,
  schemaReady: Promise<void>,
  log: Logger,
  signal: AbortSignal,
): void {
  keepDoing(schemaReady, everyMs, signal, async () => {
    try {
      await buildOnlineIndexes(databaseUrl, onlineIndexes, { log, signal });
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'indexes not built; next try in an hour');
    }
  });
}
