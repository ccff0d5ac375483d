import type { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import pg from 'pg';
import type { pgOptions } from './connection-options.ts';

/** With a handshake; a server that is frozen takes the connection and never closes it. */
const cancelLimitMs = 1_000;

/** What names a session of the server to it: of its BackendKeyData. */
export interface ServerSession {
  readonly processID: number | null;
  readonly secretKey: number | null;
}

/** What the types of `pg` leave out. */
interface Wire extends EventEmitter {
  readonly stream: Duplex;
  connect(portOrPath: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processID: number, secretKey: number): void;
}

/**
 * Asks the server at `place` to end what it does for the session, over a connection of its own, as its protocol has it.
 * Resolves when that connection has ended, which says nothing of the outcome. Never rejects.
 */
export function cancelSession(
  place: ReturnType<typeof pgOptions> | undefined,
  { processID, secretKey }: ServerSession,
): Promise<void> {
  // No greeting came yet: there is nothing to be ended.
  if (place === undefined || processID === null || secretKey === null) return Promise.resolve();
  const { host, port, ssl } = place;
  const sslNegotiation = 'sslnegotiation' in place ? place.sslnegotiation : 'postgres';
  const wire = new pg.Connection({ ssl, sslNegotiation } as pg.ConnectionConfig) as unknown as Wire;
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(limit);
      wire.stream.destroy();
      resolve();
    };
    const limit = setTimeout(end, cancelLimitMs);
    wire.on('error', end);
    wire.on('end', end);
    wire.once(ssl === false ? 'connect' : 'sslconnect', () => wire.cancel(processID, secretKey));
    if (ssl !== false && sslNegotiation === 'postgres') wire.once('connect', () => wire.requestSsl());
    if (host.startsWith('/')) wire.connect(`${host}/.s.PGSQL.${port}`);
    else wire.connect(port, host);
  });
}
