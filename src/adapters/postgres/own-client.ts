import type pg from 'pg';
import { keepAliveDelayMs } from './connection-options.ts';
import { connectClient } from './host-choice.ts';

const connectTimeoutMs = 5000;

/**
 * A connection for work that outlasts every request, held to its end; an abort closes it.
 * `purpose` follows our name in `application_name`.
 */
export async function withOwnClient<Result>(
  databaseUrl: string,
  purpose: string,
  signal: AbortSignal | undefined,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  signal?.throwIfAborted();
  const client = await connectClient(databaseUrl, `-${purpose}`, {
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveDelayMs,
  });
  const abort = (): void => void client.end().catch(() => {});
  signal?.addEventListener('abort', abort, { once: true });
  try {
    signal?.throwIfAborted();
    return await work(client);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
    await client.end().catch(() => {});
  }
}
