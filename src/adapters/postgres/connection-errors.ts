import { crowdedMessage, silentMessage } from './hosts-pool.ts';

/**
 * What a connection can fail with, each by its own code or text. No pattern: a bug of ours has a code of Node and a
 * text with "connect" in it too, and must not be taken for a database that is away.
 */

/** Of sockets and names: errno(3), and getaddrinfo(3) as Node has it. */
const networkCodes = [
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'EHOSTDOWN'],
  ...['ENETUNREACH', 'ENETDOWN', 'ENETRESET', 'ENOTCONN', 'ESHUTDOWN', 'EADDRNOTAVAIL', 'EAFNOSUPPORT'],
  // No file, memory or buffer is left for one more socket.
  ...['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'],
  ...['ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'EAI_MEMORY', 'EAI_NODATA', 'EAI_SYSTEM'],
];

/** Of Node's streams, where a connection ends while something is still to be written. */
const streamCodes = [
  ...['ERR_SOCKET_CLOSED', 'ERR_SOCKET_CONNECTION_TIMEOUT', 'ERR_STREAM_DESTROYED'],
  ...['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_WRITE_AFTER_END'],
];

/** Of TLS and certificates: https://nodejs.org/api/tls.html#x509-certificate-error-codes, read 2026-11-23. */
const tlsCodes = [
  ...['EPROTO', 'ERR_TLS_CERT_ALTNAME_INVALID', 'ERR_TLS_CERT_ALTNAME_FORMAT', 'ERR_TLS_HANDSHAKE_TIMEOUT'],
  ...['CERT_CHAIN_TOO_LONG', 'CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID', 'CERT_REJECTED', 'CERT_REVOKED'],
  ...['CERT_SIGNATURE_FAILURE', 'CERT_UNTRUSTED', 'CRL_HAS_EXPIRED', 'CRL_NOT_YET_VALID'],
  ...['CRL_SIGNATURE_FAILURE', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'ERROR_IN_CERT_NOT_AFTER_FIELD'],
  ...['ERROR_IN_CERT_NOT_BEFORE_FIELD', 'ERROR_IN_CRL_LAST_UPDATE_FIELD', 'ERROR_IN_CRL_NEXT_UPDATE_FIELD'],
  ...['HOSTNAME_MISMATCH', 'INVALID_CA', 'INVALID_PURPOSE', 'PATH_LENGTH_EXCEEDED'],
  ...['SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY', 'UNABLE_TO_DECRYPT_CERT_SIGNATURE'],
  ...['UNABLE_TO_DECRYPT_CRL_SIGNATURE', 'UNABLE_TO_GET_CRL', 'UNABLE_TO_GET_ISSUER_CERT'],
  ...['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
];

const codes: ReadonlySet<unknown> = new Set([...networkCodes, ...streamCodes, ...tlsCodes]);
/** OpenSSL has a hundred more for a handshake, and only OpenSSL has these. */
const handshakeCode = /^ERR_(OSSL|SSL)_[A-Z0-9_]+$/;
/** A socket in the file system that is not there or not for us; of any other file it is no matter of the database. */
const connectCodes: ReadonlySet<unknown> = new Set(['ENOENT', 'EACCES', 'EPERM']);

/** `pg` 8.23 and its pool have no codes of their own. */
const messages: ReadonlySet<string> = new Set([
  crowdedMessage,
  'timeout expired',
  silentMessage,
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'The server does not support SSL connections',
  'There was an error establishing an SSL connection',
]);

/** True when a connection could not be made, or ended, or its server kept silent: what a server answers is no such. */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (codes.has(code) || (syscall === 'connect' && connectCodes.has(code))) return true;
  if (code !== undefined) return handshakeCode.test(code);
  // One for each address of a name that was tried.
  if (error instanceof AggregateError)
    return error.errors.length > 0 && error.errors.every(isConnectionError);
  return messages.has(error.message);
}
