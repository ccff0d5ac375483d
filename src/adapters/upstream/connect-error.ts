import type { TransportFailureKind } from '../../chat/ports.ts';

/** A connection that was not made. No byte of a request has left. */
export class ConnectError extends Error {
  readonly kind: TransportFailureKind;
  /** What the system, TLS, a proxy or the outbound policy calls it (`CERT_HAS_EXPIRED`, `407`). Never an address. */
  readonly code: string | null;

  constructor(kind: TransportFailureKind, code: string | null = null) {
    super(code === null ? kind : `${kind} (${code})`);
    this.name = new.target.name;
    this.kind = kind;
    this.code = code;
  }
}

/** Socket errors that say nothing of certificates, whatever phase they came in. */
const networkCodes = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH']);

/** What the error of a socket says of the server that was connected to. */
export function connectFailure(error: NodeJS.ErrnoException, handshaking: boolean): ConnectError {
  const errors = error instanceof AggregateError ? (error.errors as NodeJS.ErrnoException[]) : [error];
  const code = errors[0]?.code ?? error.code ?? null;
  if (errors.some((one) => one.code === 'ETIMEDOUT')) return new ConnectError('connect-timeout', code);
  if (handshaking && (code === null || !networkCodes.has(code))) return new ConnectError('tls', code);
  return new ConnectError('connect-refused', code);
}
