import type { TransportFailure, TransportFailureKind, UpstreamTransport } from '../../chat/ports.ts';
import type { ConnectError } from './connect-error.ts';
import type { UpstreamConnections } from './upstream-connections.ts';

const tlsFailed = 'The TLS handshake failed';

const failureTexts: Readonly<Record<TransportFailureKind, string>> = {
  'connect-refused': 'The connection was refused.',
  'connect-timeout': 'No connection within the time limit.',
  dns: 'The host name could not be resolved.',
  tls: `${tlsFailed}.`,
  reset: 'The connection was closed before the answer was complete.',
  'forbidden-address': 'This address is not allowed by the outbound policy.',
  'proxy-unreachable': 'The egress proxy could not be reached, or broke off.',
  'proxy-refused': 'The egress proxy refused the connection.',
  'proxy-login': "The egress proxy did not accept the gateway's credentials.",
  'proxy-failed': 'The egress proxy could not connect to this address.',
  'proxy-abroad': 'The egress proxy is not in India, where this request has to stay.',
  protocol: 'The answer is not valid HTTP.',
  'unknown-coding': 'The answer has a content coding that is not read.',
  'too-large': 'The answer is too large.',
  'no-room': 'Too many of your calls and answers are under way; try again.',
  aborted: 'The call was aborted.',
};

/** A fixed text per kind: what the socket layer says may hold addresses that are nobody's business. */
export function transportFailure(kind: TransportFailureKind): TransportFailure {
  return { kind, message: failureTexts[kind] };
}

/** With TLS its code is told too (`CERT_HAS_EXPIRED`): whoever runs the server can mend nothing without it. */
export function connectingFailure({ kind, code }: ConnectError): TransportFailure {
  if (kind === 'tls' && code !== null) return { kind, message: `${tlsFailed} (${code}).` };
  return transportFailure(kind);
}

export interface UpstreamHttp extends UpstreamTransport {
  /** As they are now, by provider. */
  connections(): ReadonlyMap<string, UpstreamConnections>;
  /** Ends idle sockets; calls under way are cut. */
  close(): Promise<void>;
}
