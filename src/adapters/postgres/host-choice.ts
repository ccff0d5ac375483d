import pg from 'pg';
import { hostCount, pgOptions } from './connection-options.ts';

/** The server answers, and takes no writes: a standby, or a primary that was replaced. */
export class ReadOnlyServer extends Error {
  constructor() {
    super('the server is read-only');
  }
}

/** A connection that is open. */
export interface PlacedConnection {
  /** The place of its host in the URL. */
  readonly at: number;
  /** Closes it, whatever it is doing. */
  cut(): void;
}

/** Which of the hosts of a URL is believed to take writes, and what connections there are to each. */
export class HostChoice {
  readonly count: number;
  /** Of all pools that share this choice. */
  readonly open = new Set<PlacedConnection>();
  #current = 0;

  /** Throws DatabaseUrlError. */
  constructor(url: string) {
    this.count = hostCount(url);
  }

  /** Its place in the URL. */
  get current(): number {
    return this.#current;
  }

  /** It does not answer or takes no writes: the next one is tried. Of several who say so at once the first counts. */
  failed(at: number): void {
    if (at === this.#current) this.#current = (at + 1) % this.count;
  }

  /**
   * It refuses writes: where another host may take them, what is read there is out of date, so all connections to it
   * are closed. One host alone may be read-only for want of disk, and is read on.
   */
  leave(at: number): void {
    if (this.count === 1) return;
    this.failed(at);
    // Later: the statement that was refused is to hear why.
    setImmediate(() => {
      for (const connection of this.open) if (connection.at === at) connection.cut();
    });
  }
}

/** Rejects with ReadOnlyServer. */
export async function expectWritable(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ transaction_read_only: string }>('SHOW transaction_read_only');
  if (rows[0]?.transaction_read_only !== 'off') throw new ReadOnlyServer();
}

/**
 * A connection of its own to the host that takes writes; each is tried once. The caller ends it. Rejects with the error
 * of the last one.
 */
export async function connectClient(
  url: string,
  purpose: string,
  config: pg.ClientConfig,
): Promise<pg.Client> {
  const count = hostCount(url);
  for (let at = 0; ; at += 1) {
    const client = new pg.Client({ ...pgOptions(url, purpose, at), ...config });
    client.on('error', () => {}); // the query in flight reports it
    try {
      await client.connect();
      if (count > 1) await expectWritable(client);
      return client;
    } catch (error) {
      await client.end().catch(() => {});
      if (at + 1 >= count) throw error;
    }
  }
}
