import type { TransportFailureKind } from '../../chat/ports.ts';
import type { OutboundRefusal } from '../../core/net/outbound-policy.ts';

/** A connection that was not made. No byte of a request has left. */
export class ConnectError extends Error {
  readonly kind: TransportFailureKind;

  constructor(kind: TransportFailureKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.kind = kind;
  }
}

/** The address is one that this deployment does not connect to. The message names no address. */
export class OutboundForbiddenError extends ConnectError {
  readonly refusal: OutboundRefusal;

  constructor(refusal: OutboundRefusal) {
    super('forbidden-address', `The outbound policy forbids this address (${refusal}).`);
    this.refusal = refusal;
  }
}

/** Socket errors that say nothing of certificates, whatever phase they came in. */
const networkCodes = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH']);

/** What the error of a socket says of the server that was connected to. */
export function connectFailure(error: NodeJS.ErrnoException, handshaking: boolean): ConnectError {
  const errors = error instanceof AggregateError ? (error.errors as NodeJS.ErrnoException[]) : [error];
  const code = errors[0]?.code ?? error.code ?? '';
  if (errors.some((one) => one.code === 'ETIMEDOUT')) {
    return new ConnectError('connect-timeout', `Connecting timed out (${code}).`, error);
  }
  if (handshaking && !networkCodes.has(code)) {
    return new ConnectError('tls', `The TLS handshake failed (${code === '' ? 'unknown' : code}).`, error);
  }
  return new ConnectError('connect-refused', `The connection was not accepted (${code}).`, error);
}
