import pg from 'pg';
import type { EmbeddedPostgres } from './embedded-postgres.ts';
import { StartError } from './start-error.ts';

const databaseName = 'model_gateway';
/** Any number will do, as long as only `npm start` uses it in the database `postgres`. */
const instanceLock = 7_203_114;
/** A killed instance lets go as soon as the server notices its closed socket. */
const lockTimeout = '2s';
const connectTimeoutMs = 10_000;
/** SQLSTATE of a lock that did not come within that time. */
const lockNotAvailable = '55P03';

export interface GatewayDatabase {
  readonly url: string;
  release(): Promise<void>;
}

/**
 * Makes the gateway's database and holds a lock for as long as we run, so that a second `npm start` neither
 * shares nor stops the first one's server. Throws StartError when another instance holds it.
 */
export async function claimDatabase(server: EmbeddedPostgres): Promise<GatewayDatabase> {
  const client = new pg.Client({
    connectionString: server.url,
    connectionTimeoutMillis: connectTimeoutMs,
    application_name: 'model-gateway-start',
  });
  client.on('error', () => {}); // the server left; the gateway notices by itself
  await client.connect();
  try {
    await client.query(`SET lock_timeout = '${lockTimeout}'`);
    await client.query('SELECT pg_advisory_lock($1)', [instanceLock]).catch((error: unknown) => {
      if ((error as { code?: unknown }).code !== lockNotAvailable) throw error;
      throw new InUseError(`Another instance already runs on ${server.home}: stop it, or set GW_DATA_DIR.`);
    });
    const found = await client.query('SELECT FROM pg_database WHERE datname = $1', [databaseName]);
    if (found.rowCount === 0) await client.query(`CREATE DATABASE ${databaseName}`);
  } catch (error) {
    await client.end();
    throw error;
  }
  const url = new URL(server.url);
  url.pathname = `/${databaseName}`;
  return { url: url.href, release: () => client.end() };
}

/** The server belongs to somebody else, who must not lose it. */
export class InUseError extends StartError {}
