import type { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import pg from 'pg';
import type { OnCertificates } from '../system/certificate-files.ts';
import type { ServerSession } from './cancel-session.ts';
import { cancelSession } from './cancel-session.ts';
import { pgOptions } from './connection-options.ts';
import type { HostChoice, PlacedConnection } from './host-choice.ts';
import { expectWritable } from './host-choice.ts';
import { QueryWatch } from './query-watch.ts';
import { sqlStates } from './sql-states.ts';

/** What `pg` says when all connections of the pool are in use for too long; of a silent server it says otherwise. */
export const crowdedMessage = 'timeout exceeded when trying to connect';
/** Of a query that is not answered, as `pg` says it too. */
export const silentMessage = 'Query read timeout';

/** So long a silent connection is kept for its server to be told: each caller waits as much longer. */
const farewellMs = 80;

/** Of a client, and of the connection below it, which the types of `pg` leave out. */
interface Inner extends ServerSession {
  readonly connection: EventEmitter & { readonly stream: Duplex };
}

type Send = (query: string | (pg.QueryConfig & { query_timeout?: number }), ...rest: unknown[]) => unknown;

type Callback = (error: Error | undefined, client: pg.PoolClient | undefined, done: () => void) => void;

/**
 * A pool on the one host of its URL that takes writes. A connection is tried on each of several before it fails, and
 * given up where a write is refused since the server is read-only, or where a query is not answered in time.
 */
export class HostsPool extends pg.Pool {
  readonly #choice: HostChoice;

  /**
   * `begin` readies a new connection; `choice` is one of this URL; a query may take `answerMs`, or what its
   * `query_timeout` says; `onCertificates` is told of the files that the URL names. Throws DatabaseUrlError.
   */
  constructor(
    url: string,
    choice: HostChoice,
    config: pg.PoolConfig,
    answerMs: number,
    begin: (client: pg.ClientBase) => Promise<void>,
    onCertificates?: OnCertificates,
  ) {
    const places = Array.from({ length: choice.count }, (_, at) => pgOptions(url, '', at, onCertificates));

    class PlacedClient extends pg.Client implements PlacedConnection {
      readonly at: number;

      constructor() {
        const at = choice.current;
        super({ ...config, ...places[at] });
        this.at = at;
        choice.open.add(this);
        const watch = new QueryWatch(answerMs, () => this.#giveUp());
        const send = this.query.bind(this) as Send;
        const watched: Send = (query, ...rest) => {
          watch.sent(typeof query === 'string' ? undefined : query.query_timeout);
          return send(query, ...rest);
        };
        this.query = watched as typeof this.query;
        this.#inner.connection.on('readyForQuery', () => watch.answered());
        this.once('end', () => {
          watch.close();
          choice.open.delete(this);
        });
        this.#inner.connection.on('errorMessage', ({ code }: { code?: string }) => {
          if (code === sqlStates.readOnlyTransaction) choice.leave(at);
        });
      }

      get #inner(): Inner {
        return this as unknown as Inner;
      }

      /**
       * The server is asked to end the query, which it may not do by itself: a commit that waits for a standby stays
       * behind its client, and with each such session the server has one fewer for everybody.
       */
      #giveUp(): void {
        const { stream } = this.#inner.connection;
        // What comes now is not heard: a commit whose wait was ended is told as done, and may be lost.
        stream.pause();
        const drop = (): void => void stream.destroy(new Error(silentMessage));
        const farewell = setTimeout(drop, farewellMs);
        // Whoever stands between, a pooler, forgets at the end of the connection what was to be ended.
        void cancelSession(places[this.at], this.#inner).then(() => {
          clearTimeout(farewell);
          drop();
        });
      }

      cut(): void {
        this.#inner.connection.stream.destroy();
      }
    }

    const ready = async (client: pg.ClientBase): Promise<void> => {
      await begin(client);
      if (choice.count > 1) await expectWritable(client);
    };
    super({ ...config, ...places[0], Client: PlacedClient, onConnect: ready });
    this.#choice = choice;
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: Callback): void;
  override connect(callback?: Callback): Promise<pg.PoolClient> | undefined {
    if (callback !== undefined) {
      this.#connectToAny(1, callback);
      return undefined;
    }
    return new Promise((resolve, reject) => {
      this.#connectToAny(1, (error, client) => {
        if (client === undefined) reject(error);
        else resolve(client);
      });
    });
  }

  /** Each host is tried once. Nothing is tried again while it is our own connections that are all in use. */
  #connectToAny(tries: number, callback: Callback): void {
    const at = this.#choice.current;
    super.connect((error, client, done) => {
      const isSilent = error !== undefined && error.message !== crowdedMessage;
      if (isSilent) this.#choice.failed(at);
      if (isSilent && tries < this.#choice.count) this.#connectToAny(tries + 1, callback);
      else callback(error, client, done);
    });
  }
}
