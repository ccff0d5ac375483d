import type { OnReadOpts, Socket } from 'node:net';
import { isIP } from 'node:net';
import type { EgressTarget } from '../../core/net/egress.ts';
import { proxyFor } from '../../core/net/egress.ts';
import type { EgressProxy } from '../../core/net/egress-proxy.ts';
import { isBypassed } from '../../core/net/no-proxy.ts';
import type { OutboundPolicy } from '../../core/net/outbound-policy.ts';
import { decideOutbound } from '../../core/net/outbound-policy.ts';
import { ConnectError, connectFailure } from './connect-error.ts';
import type { ConnectCallback, Connector, ConnectTarget } from './connector.ts';
import type { HostLookup } from './host-lookup.ts';
import { lookupBySystem, lookupWithoutThread } from './host-lookup.ts';
import type { HostAddress } from './name-files.ts';
import { openTcp, openTls, openTlsWithin, readInto, TlsSessions } from './open-socket.ts';
import { askForTunnel, oneOfEachFamily } from './proxy-tunnel.ts';
import { openUserTls } from './user-tls.ts';

export interface ConnectorOptions {
  /** A user chose the address: the whole policy applies, not only the rule about metadata services. */
  readonly userAddress: boolean;
  /** Look-up, TCP, the proxy's part and TLS together. */
  readonly connectTimeoutMs: number;
  /** False: for requests that must not pass the proxies. Where one would be needed, nothing is connected to. */
  readonly mayPassProxies?: boolean;
  /** Extra trusted roots (PEM), for tests with an own authority. */
  readonly ca?: string;
  readonly lookup?: HostLookup;
}

/** What is being waited for, and what it is when it takes too long. */
const lateness = {
  lookup: 'dns',
  connect: 'connect-timeout',
  proxy: 'proxy-unreachable',
  tunnel: 'connect-timeout',
} as const;

/**
 * One connection from its look-up to its end.
 *
 * Directly: `lookup` → `connect` (TLS included). Through a proxy: for users' addresses `lookup`, then `proxy` →
 * `tunnel` (CONNECT was sent) → `connect` (TLS inside).
 */
class Connecting {
  readonly #policy: OutboundPolicy;
  readonly #options: ConnectorOptions;
  readonly #sessions: TlsSessions;
  readonly #target: ConnectTarget;
  readonly #place: EgressTarget;
  readonly #callback: ConnectCallback;
  readonly #timer: NodeJS.Timeout;
  readonly #budget = new AbortController();
  #phase: keyof typeof lateness = 'lookup';
  #handshaking = false;
  #socket: Socket | null = null;
  #settled = false;

  constructor(
    policy: OutboundPolicy,
    options: ConnectorOptions,
    sessions: TlsSessions,
    target: ConnectTarget,
    callback: ConnectCallback,
  ) {
    this.#policy = policy;
    this.#options = options;
    this.#sessions = sessions;
    this.#target = target;
    this.#callback = callback;
    const { hostname, protocol, port } = target;
    const portOfProtocol = protocol === 'https:' ? 443 : 80;
    this.#place = { host: hostname, protocol, port: port === '' ? portOfProtocol : Number(port) };
    this.#timer = setTimeout(() => {
      this.fail(new ConnectError(lateness[this.#phase]));
    }, options.connectTimeoutMs);
  }

  begin(lookup: HostLookup): void {
    const { userAddress } = this.#options;
    const { host, port } = this.#place;
    const proxy = proxyFor(this.#policy.egress, this.#place);
    // The operator's own addresses are the proxy's to resolve; those of users are decided on, and so known, here.
    if (proxy !== null && !userAddress && isIP(host) === 0) {
      queueMicrotask(() => this.#goThrough(proxy, [host]));
      return;
    }
    lookup(host, this.#budget.signal, (error, addresses) => {
      if (this.#settled) return;
      if (error !== null || addresses.length === 0) {
        return this.fail(new ConnectError('dns', error?.code));
      }
      if (this.#isForbidden(addresses, port, userAddress)) return;
      if (proxy === null) return this.#goDirectly(addresses);
      const near = addresses.filter(({ address }) => isBypassed(this.#policy.egress.bypass, address, port));
      if (near.length > 0) this.#goDirectly(near);
      else this.#goThrough(proxy, oneOfEachFamily(addresses));
    });
  }

  fail(error: ConnectError): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#timer);
    this.#budget.abort();
    this.#socket?.destroy();
    this.#callback(error, null);
  }

  #isForbidden(addresses: readonly HostAddress[], port: number, userAddress: boolean): boolean {
    for (const { address } of addresses) {
      const refusal = decideOutbound(address, port, this.#policy, userAddress);
      if (refusal === null) continue;
      this.fail(new ConnectError('forbidden-address', refusal));
      return true;
    }
    return false;
  }

  #goDirectly(addresses: readonly HostAddress[]): void {
    this.#phase = 'connect';
    const secure = this.#place.protocol === 'https:';
    const isWithin = secure && this.#options.userAddress;
    const socket =
      secure && !isWithin
        ? openTls(this.#tlsTarget(this.#target.onread), addresses)
        : openTcp(isWithin ? this.#place : this.#tcpTarget(), addresses);
    this.#hold(socket);
    socket.once('connect', () => {
      this.#handshaking = secure;
      if (isWithin) this.#goInside(socket, socket.remoteAddress ?? null);
    });
    if (isWithin) return;
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      this.#succeed(socket, socket.remoteAddress ?? null);
    });
  }

  /** `places` are tried in turn, while the proxy says that it could not connect. */
  #goThrough(proxy: EgressProxy, places: readonly string[]): void {
    if (this.#settled) return;
    if (this.#options.mayPassProxies === false) {
      this.fail(new ConnectError('proxy-abroad'));
      return;
    }
    this.#phase = 'proxy';
    lookupBySystem(proxy.host, this.#budget.signal, (error, addresses) => {
      if (this.#settled) return;
      if (error !== null || addresses.length === 0) {
        return this.fail(new ConnectError('proxy-unreachable', error?.code));
      }
      if (this.#isForbidden(addresses, proxy.port, false)) return;
      const { host, port, secure } = proxy;
      const { ca } = this.#options;
      const servername = isIP(host) === 0 ? host : undefined;
      const carrier = secure
        ? openTls({ host, port, servername, ca, sessions: this.#sessions }, addresses)
        : openTcp({ host, port }, addresses);
      this.#hold(carrier);
      carrier.once(secure ? 'secureConnect' : 'connect', () => this.#askFor(proxy, carrier, places));
    });
  }

  #askFor(proxy: EgressProxy, carrier: Socket, [place = '', ...others]: readonly string[]): void {
    if (this.#settled) return;
    this.#phase = 'tunnel';
    askForTunnel(carrier, { host: place, port: this.#place.port }, proxy.authorization, (error) => {
      if (this.#settled) return;
      if (error === null) return this.#goInside(carrier, isIP(place) === 0 ? null : place);
      if (error.kind !== 'proxy-failed' || others.length === 0) return this.fail(error);
      this.#socket = null;
      carrier.destroy();
      this.#goThrough(proxy, others);
    });
  }

  #goInside(carrier: Socket, address: string | null): void {
    this.#phase = 'connect';
    const { onread } = this.#target;
    const secure = this.#place.protocol === 'https:';
    this.#handshaking = secure;
    const openWithin = this.#options.userAddress ? openUserTls : openTlsWithin;
    const socket = secure ? openWithin(carrier, this.#tlsTarget(), address) : carrier;
    if (secure) this.#hold(socket);
    const opened = (): void => {
      // Not the socket's own doing: it reads for TLS, or read what the proxy said, before it reads for its owner.
      if (onread !== undefined) readInto(socket, onread);
      this.#succeed(socket, address);
    };
    if (secure) socket.once('secureConnect', opened);
    else opened();
  }

  #tcpTarget() {
    const { host, port } = this.#place;
    return { host, port, onread: this.#target.onread };
  }

  #tlsTarget(onread?: OnReadOpts) {
    const { host, port } = this.#place;
    const { servername } = this.#target;
    return { host, port, servername, onread, ca: this.#options.ca, sessions: this.#sessions };
  }

  /** From now on this is what fails, and what is closed on failure. */
  #hold(socket: Socket): void {
    this.#socket = socket;
    const onGone = (cause: NodeJS.ErrnoException): void => {
      if (this.#socket !== socket) return;
      const isProxy = this.#phase === 'proxy' || this.#phase === 'tunnel';
      this.fail(
        isProxy
          ? new ConnectError('proxy-unreachable', cause.code)
          : connectFailure(cause, this.#handshaking),
      );
    };
    socket.on('error', onGone);
    // TLS inside of a tunnel ends with it, without an error.
    socket.once('close', () => onGone(Object.assign(new Error('closed'), { code: 'ECONNRESET' })));
  }

  #succeed(socket: Socket, address: string | null): void {
    // Destroyed: by who was told first that it is secure, and says why by an error.
    if (this.#settled || socket.destroyed) return;
    this.#settled = true;
    clearTimeout(this.#timer);
    this.#target.onReached?.(address);
    this.#callback(null, socket);
  }
}

/**
 * A connector that checks where a connection goes when it is made: IP literals and every address a name resolves to,
 * and then connects to those very addresses, or has a proxy connect to them. One forbidden address among several
 * refuses them all. Fails with `ConnectError`, whose `kind` the transport reports.
 */
export function createConnector(policy: OutboundPolicy, options: ConnectorOptions): Connector {
  const sessions = new TlsSessions();
  const lookup = options.lookup ?? (options.userAddress ? lookupWithoutThread(null) : lookupBySystem);
  return (target, callback) => {
    const connecting = new Connecting(policy, options, sessions, target, callback);
    connecting.begin(lookup);
    return () => connecting.fail(new ConnectError('aborted'));
  };
}
