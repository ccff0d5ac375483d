import pg from 'pg';
import { StoreAway } from '../../core/store-away.ts';
import type { OnCertificates } from '../system/certificate-files.ts';
import { isConnectionError } from './connection-errors.ts';
import { keepAliveDelayMs } from './connection-options.ts';
import { HostChoice, ReadOnlyServer } from './host-choice.ts';
import { crowdedMessage, HostsPool } from './hosts-pool.ts';
import { sqlStates } from './sql-states.ts';

/**
 * Bounds that together keep every management call under 2 s when the server hangs: waiting for a
 * connection, then for the answer. Without them `pg` waits for ever on a half-open socket.
 */
export const poolConnectMs = 900;
/** The server gives up too, instead of going on with work that nobody waits for. */
const statementTimeoutMs = 900;
const queryGraceMs = 100;
/** Keeps a forgotten transaction from holding locks. */
const idleInTransactionTimeoutMs = 5000;
const idleTimeoutMs = 30_000;

/**
 * What the server itself ends: a statement, a wait for a lock (of which half the time is enough: what waited longer may
 * not have the time to work), a transaction that nobody goes on with. `set` is `SET` or `SET LOCAL`.
 */
function limits(set: 'SET' | 'SET LOCAL', patienceMs: number): string {
  const lockMs = Math.ceil(patienceMs / 2);
  return (
    `${set} statement_timeout = ${patienceMs}; ${set} lock_timeout = ${lockMs}; ` +
    `${set} idle_in_transaction_session_timeout = ${idleInTransactionTimeoutMs}`
  );
}

/**
 * A pool whose connections lead to a transaction-mode pooler. What is SET there stays with whichever connection of the
 * server ran it, so every transaction brings its limits along, and a statement alone is a transaction.
 */
class PooledPool extends HostsPool {
  readonly opening: string;

  constructor(
    url: string,
    hosts: HostChoice,
    config: pg.PoolConfig,
    patienceMs: number,
    onCertificates?: OnCertificates,
  ) {
    super(url, hosts, config, patienceMs + queryGraceMs, () => Promise.resolve(), onCertificates);
    this.opening = `BEGIN; ${limits('SET LOCAL', patienceMs)}`;
    const query = (text: pg.QueryConfig, values?: unknown[]) =>
      inTransaction(this, (client) => client.query(text, values));
    this.query = query as pg.Pool['query'];
  }
}

export interface PoolOptions {
  /** How long a statement may take. */
  readonly patienceMs?: number;
  /** How long to wait for a connection. */
  readonly connectMs?: number;
  /** The URL leads to a pooler that hands out connections for a transaction at a time. */
  readonly pooled?: boolean;
  /** Shared with other connections of the same URL, so that what one of them finds out they all know. */
  readonly hosts?: HostChoice;
  /** Of pools whose URLs name the same files one is enough. */
  readonly onCertificates?: OnCertificates | undefined;
}

/**
 * A pool whose every wait ends. Connections are made on demand, so it can be created while Postgres is
 * away. Limits are set by SET rather than at connect, because poolers refuse unknown start-up parameters.
 * Throws DatabaseUrlError.
 */
export function createPool(url: string, max: number, options: PoolOptions = {}): pg.Pool {
  const { patienceMs = statementTimeoutMs, connectMs = poolConnectMs } = options;
  const { pooled = false, hosts = new HostChoice(url), onCertificates } = options;
  const config: pg.PoolConfig = {
    max,
    connectionTimeoutMillis: connectMs,
    idleTimeoutMillis: idleTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveDelayMs,
    allowExitOnIdle: true,
  };
  const setLimits = async (client: pg.ClientBase): Promise<void> => {
    await client.query(limits('SET', patienceMs));
  };
  const pool = pooled
    ? new PooledPool(url, hosts, config, patienceMs, onCertificates)
    : new HostsPool(url, hosts, config, patienceMs + queryGraceMs, setLimits, onCertificates);
  // An idle connection that the server closes is replaced by the next query; unheard, the event ends the process.
  pool.on('error', () => {});
  return pool;
}

/** SQLSTATE of an error that the server itself reported, else null. */
export function sqlState(error: unknown): string | null {
  return error instanceof pg.DatabaseError ? (error.code ?? null) : null;
}

/** Postgres would also read braces; only the plain form (RFC 9562) names a row. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text);
}

/** A row is none that its table, or its partition, may hold. */
export function isCheckViolation(error: unknown): boolean {
  return sqlState(error) === sqlStates.checkViolation;
}

/** Some other relation has the name. */
export const isNameTaken = (error: unknown): boolean => sqlState(error) === sqlStates.duplicateTable;

/** Of SQLSTATE: data, constraints, and what is too large for the server (an index entry, say). */
const dataErrorClasses: ReadonlySet<string> = new Set(['22', '23', '54']);

/** No partition of the table takes the row: so it is with every row of its week. A constraint would be named. */
function lacksPartition(error: unknown): boolean {
  if (!isCheckViolation(error)) return false;
  const { constraint, table } = error as pg.DatabaseError;
  return constraint === undefined && table !== undefined;
}

/** The row's own values are at fault. */
export function isDataError(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && dataErrorClasses.has(state.slice(0, 2)) && !lacksPartition(error);
}

/** Classes in which the server says "not now": connection, resources, intervention, system, read-only standby. */
const awayClasses = new Set(['08', '53', '57', '58']);
const awayStates = new Set<string>([
  sqlStates.readOnlyTransaction,
  sqlStates.serializationFailure,
  sqlStates.deadlockDetected,
  sqlStates.lockNotAvailable,
  sqlStates.undefinedTable,
  sqlStates.invalidCatalogName,
  sqlStates.invalidPassword,
  sqlStates.internalError,
]);

/** True when Postgres is away, overloaded, not migrated yet, or refuses the connection: try again later. */
export function isAway(error: unknown): boolean {
  if (error instanceof ReadOnlyServer) return true;
  const state = sqlState(error);
  if (state !== null) return awayClasses.has(state.slice(0, 2)) || awayStates.has(state);
  return isConnectionError(error);
}

/** A table or a column is not there. */
const schemaStates = new Set<string>([sqlStates.undefinedTable, sqlStates.undefinedColumn]);
/** A wrong password or role, a role that may not enter, a database that does not exist. */
const refusedStates = new Set<string>([
  sqlStates.invalidPassword,
  sqlStates.invalidAuthorization,
  sqlStates.invalidCatalogName,
]);

/** The error, or what it was made of. */
const causeOf = (error: unknown): unknown => (error instanceof StoreAway ? error.cause : error);

/** True when the error, or what it was made of, is a schema that is not there yet, or not all of it. */
export function lacksSchema(error: unknown): boolean {
  return schemaStates.has(sqlState(causeOf(error)) ?? '');
}

/** True when the server answers, but not with these settings: waiting does not help whoever can change them. */
export function refusesSettings(error: unknown): boolean {
  return refusedStates.has(sqlState(causeOf(error)) ?? '');
}

/** What a query threw, as StoreAway when that is what it says. */
function storeError(error: unknown): unknown {
  if (!isAway(error)) return error;
  return new StoreAway(error, error instanceof Error && error.message === crowdedMessage);
}

/** The server undid the work before it said so: serialization failure, deadlock, shutdown. */
const retryableStates = new Set<string>([
  sqlStates.serializationFailure,
  sqlStates.deadlockDetected,
  sqlStates.adminShutdown,
]);

/**
 * Runs `work`, once more if the server rolled it back, and maps the error. `work` is one statement or one
 * transaction. Throws StoreAway while Postgres is away.
 */
export async function withDatabase<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const state = sqlState(error);
    if (state === null || !retryableStates.has(state)) throw storeError(error);
  }
  try {
    return await work();
  } catch (error) {
    throw storeError(error);
  }
}

/** One transaction on one connection; rolls back on any throw, and discards a connection that failed. */
export async function inTransaction<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  // A connection that dies between two statements would otherwise end the process.
  const ignore = (): void => {};
  client.on('error', ignore);
  let broken: Error | boolean = false;
  try {
    await client.query(pool instanceof PooledPool ? pool.opening : 'BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    if (isDataError(error)) {
      await client.query('ROLLBACK').catch((failure: Error) => {
        broken = failure;
      });
    } else {
      broken = true; // closing the connection rolls back, without waiting for a server that may be gone
    }
    throw error;
  } finally {
    client.off('error', ignore);
    client.release(broken);
  }
}
