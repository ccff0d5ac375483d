import type { Connection } from './connection.ts';

/** A call that needs a connection. */
export interface WaitingCall {
  /** The caller has left: it gets none. */
  readonly isOver: boolean;
  /** One is being made for it. `abandon` says that it is not needed any more. */
  onOpening(connection: Connection): void;
  onConnection(connection: Connection): void;
  onConnectError(error: Error): void;
}

/** Who lends the connection out. Each is called in the turn of its cause. */
export interface ConnectionOwner {
  /** When a byte last came, on any of the owner's connections. */
  heardAtMs: number;
  /** The call that this connection is made for is over. True: it is made to its end all the same. */
  keepOpening(connection: Connection): boolean;
  /** The answer is whole and the connection can carry another call. */
  onFree(connection: Connection): void;
  onClosed(connection: Connection): void;
  /** A call was given up, to which nothing had come since then; `midAnswer`: its answer had begun. */
  onSilent(sinceMs: number, midAnswer: boolean): void;
}
