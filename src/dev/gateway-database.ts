import pg from 'pg';
import type { EmbeddedPostgres } from './embedded-postgres.ts';
import { StartError } from './start-error.ts';

const DATABASE = 'model_gateway';
/** Any number will do, as long as only `npm start` uses it in the database `postgres`. */
const INSTANCE_LOCK = 7_203_114;
/** A killed instance lets go as soon as the server notices its closed socket. */
const LOCK_TIMEOUT = '2s';
const CONNECT_TIMEOUT_MS = 10_000;

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
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'model-gateway-start',
  });
  client.on('error', () => {}); // the server left; the gateway notices by itself
  await client.connect();
  try {
    await client.query(`SET lock_timeout = '${LOCK_TIMEOUT}'`);
    await client.query('SELECT pg_advisory_lock($1)', [INSTANCE_LOCK]).catch(() => {
      throw new InUseError(`Another instance already runs on ${server.home}: stop it, or set GW_DATA_DIR.`);
    });
    const found = await client.query('SELECT FROM pg_database WHERE datname = $1', [DATABASE]);
    if (found.rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  } catch (error) {
    await client.end();
    throw error;
  }
  const url = new URL(server.url);
  url.pathname = `/${DATABASE}`;
  return { url: url.href, release: () => client.end() };
}

/** The server belongs to somebody else, who must not lose it. */
export class InUseError extends StartError {}
