import type { LookupFunction, OnReadOpts, Socket } from 'node:net';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { TransportFailureKind } from '../../chat/ports.ts';
import type { OutboundPolicy, OutboundRefusal } from '../../core/net/outbound-policy.ts';
import { decideOutbound } from '../../core/net/outbound-policy.ts';
import type { HostAddress, HostLookup } from './host-lookup.ts';
import { lookupBySystem, lookupWithoutThread } from './host-lookup.ts';

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

export interface ConnectorOptions {
  /** A user chose the address: the whole policy applies, not only the rule about metadata services. */
  readonly userAddress: boolean;
  /** Look-up, TCP and TLS together. */
  readonly connectTimeoutMs: number;
  /** Extra trusted roots (PEM), for tests with an own authority. */
  readonly ca?: string;
  readonly lookup?: HostLookup;
}

/** One address of several gets this long before the next is tried beside the budget (RFC 8305 section 5). */
const attemptDelayMs = 500;
/** TCP keep-alive probes start after this long without traffic: below the usual 350 s of cloud NATs. */
const keepAliveMs = 60_000;
/** Resumed TLS sessions kept per connector; one per origin, and a connector serves few origins. */
const maxTlsSessions = 100;

/** Socket errors that say nothing of certificates, whatever phase they came in. */
const networkCodes = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH']);

function failureOf(error: NodeJS.ErrnoException, handshaking: boolean): ConnectError {
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

/** Hands the checked addresses to the socket, so that no second look-up can answer differently. */
function fixedLookup(addresses: readonly HostAddress[]): LookupFunction {
  return (_host, options, callback) => {
    const first = addresses[0] as HostAddress;
    if (options.all) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };
}

class TlsSessions {
  readonly #sessions = new Map<string, Buffer>();

  get(origin: string): Buffer | undefined {
    return this.#sessions.get(origin);
  }

  keep(origin: string, session: Buffer): void {
    this.#sessions.delete(origin);
    const oldest = this.#sessions.keys().next();
    if (this.#sessions.size >= maxTlsSessions && !oldest.done) this.#sessions.delete(oldest.value);
    this.#sessions.set(origin, session);
  }
}

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
}

/**
 * Opens one connection; calls back once, with the error or the socket. What it returns gives the connection up, as
 * `aborted`, unless it is made already.
 */
export type Connector = (
  target: ConnectTarget,
  callback: (...outcome: [error: null, socket: Socket] | [error: Error, socket: null]) => void,
) => () => void;

function openSocket(
  target: ConnectTarget,
  port: number,
  addresses: readonly HostAddress[],
  options: ConnectorOptions,
  sessions: TlsSessions,
): Socket {
  const { hostname } = target;
  const tcp = {
    host: hostname,
    port,
    lookup: fixedLookup(addresses),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: attemptDelayMs,
    ...(target.onread === undefined ? {} : { onread: target.onread }),
  };
  if (target.protocol !== 'https:') return connectTcp(tcp);
  const origin = `${hostname}:${port}`;
  const servername = target.servername ?? '';
  const session = sessions.get(origin);
  const socket = connectTls({
    ...tcp,
    // An IP literal has no server name: the certificate must then carry the address itself.
    ...(servername === '' ? {} : { servername }),
    ...(session === undefined ? {} : { session }),
    ...(options.ca === undefined ? {} : { ca: options.ca }),
    ALPNProtocols: ['http/1.1'],
    // Stated, since an environment variable can switch the default off.
    rejectUnauthorized: true,
  });
  socket.on('session', (fresh: Buffer) => sessions.keep(origin, fresh));
  return socket;
}

function refusalAmong(
  addresses: readonly HostAddress[],
  port: number,
  policy: OutboundPolicy,
  userAddress: boolean,
): OutboundRefusal | null {
  for (const { address } of addresses) {
    const refusal = decideOutbound(address, port, policy, userAddress);
    if (refusal !== null) return refusal;
  }
  return null;
}

/**
 * A connector that checks where a connection goes when it is made: IP
 * literals and every address a name resolves to, and then connects to those very addresses. One forbidden
 * address among several refuses them all. Fails with `ConnectError`, whose `kind` the transport reports.
 */
export function createConnector(policy: OutboundPolicy, options: ConnectorOptions): Connector {
  const sessions = new TlsSessions();
  const lookup = options.lookup ?? (options.userAddress ? lookupWithoutThread(null) : lookupBySystem);

  return (target, callback) => {
    const secure = target.protocol === 'https:';
    const port = target.port === '' ? (secure ? 443 : 80) : Number(target.port);
    const budget = new AbortController();
    let socket: Socket | null = null;
    let handshaking = false;
    let settled = false;

    const fail = (error: ConnectError): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      budget.abort();
      socket?.destroy();
      callback(error, null);
    };
    const timer = setTimeout(() => {
      const phase = socket === null ? 'The look-up of the host name' : 'Connecting';
      const message = `${phase} took longer than ${options.connectTimeoutMs} ms.`;
      fail(new ConnectError(socket === null ? 'dns' : 'connect-timeout', message));
    }, options.connectTimeoutMs);

    lookup(target.hostname, budget.signal, (error, addresses) => {
      if (error !== null || addresses.length === 0) {
        const code = (error as NodeJS.ErrnoException | null)?.code ?? 'no address';
        return fail(new ConnectError('dns', `The host name was not resolved (${code}).`, error));
      }
      const refusal = refusalAmong(addresses, port, policy, options.userAddress);
      if (refusal !== null) return fail(new OutboundForbiddenError(refusal));
      const opened = openSocket(target, port, addresses, options, sessions);
      socket = opened;
      opened.setNoDelay(true).setKeepAlive(true, keepAliveMs);
      opened.once('connect', () => {
        handshaking = secure;
      });
      opened.once(secure ? 'secureConnect' : 'connect', () => {
        if (settled) return;
        settled = true;
        clearTimeout(timer);
        callback(null, opened);
      });
      opened.on('error', (cause) => fail(failureOf(cause, handshaking)));
    });
    return () => fail(new ConnectError('aborted', 'Nobody waits for this connection any more.'));
  };
}
