import type { OnReadOpts, Socket } from 'node:net';

/** Where to. undici's `connect` option is called with such a thing too. */
export interface ConnectTarget {
  /** A name, or an IP literal without brackets. */
  readonly hostname: string;
  readonly protocol: string;
  /** Empty: that of the protocol. */
  readonly port: string;
  /** For TLS; absent for IP literals. */
  readonly servername?: string | undefined;
  /** Takes the reads of sockets whose owner has a buffer of its own. */
  readonly onread?: OnReadOpts;
  /** Is told, before the callback, which address the connection leads to; null: only the proxy knows. */
  readonly onReached?: (address: string | null) => void;
}

export type ConnectCallback = (
  ...outcome: [error: null, socket: Socket] | [error: Error, socket: null]
) => void;

/**
 * Opens one connection; calls back once, with the error or the socket. What it returns gives the connection up, as
 * `aborted`, unless it is made already.
 */
export type Connector = (target: ConnectTarget, callback: ConnectCallback) => () => void;
