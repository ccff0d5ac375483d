import { Secret } from '../secret/secret.ts';
import { EgressError } from './no-proxy.ts';
import { percentDecoded } from './percent-decoded.ts';

/** A forward proxy that is asked for connections with CONNECT (RFC 9110 section 9.3.6). */
export interface EgressProxy {
  /** TLS to the proxy itself; what it carries has TLS of its own. */
  readonly secure: boolean;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Value of `Proxy-Authorization`; null: the URL has no credentials. */
  readonly authorization: Secret | null;
}

const urlShape = /^(?:(https?):\/\/)?(?:([^/?#]*)@)?(\[[^\]]+\]|[^:/?#@[\]\s]+)(?::(\d{1,5}))?\/?$/i;
const largestPort = 65_535;

const decode = (text: string): string => percentDecoded(text, EgressError);

/** Basic authentication (RFC 7617), of which a user with a colon could not be told from a password. */
function basic(login: string): Secret {
  const colon = login.indexOf(':');
  const user = decode(colon < 0 ? login : login.slice(0, colon));
  const password = colon < 0 ? '' : decode(login.slice(colon + 1));
  if (user.includes(':')) throw new EgressError('has a user name with a colon, which Basic cannot carry.');
  return new Secret(`Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`);
}

/**
 * Reads `http://user:password@host:port`; `https` for TLS to the proxy, no scheme means http. The port is that of the
 * scheme where none is named. Throws EgressError, whose message holds nothing of the text.
 */
export function parseProxyUrl(text: string): EgressProxy {
  const match = urlShape.exec(text);
  if (match === null) {
    const form = 'must be http://user:password@host:port or https://…, special characters percent-encoded';
    throw new EgressError(`${form}${/^socks/i.test(text) ? '; SOCKS is not spoken' : ''}.`);
  }
  const [, scheme = 'http', login = '', host = '', portText] = match;
  const secure = scheme.toLowerCase() === 'https';
  const port = portText === undefined ? (secure ? 443 : 80) : Number(portText);
  if (port < 1 || port > largestPort) throw new EgressError('has a port that is none.');
  return {
    secure,
    host: host.replace(/^\[(.+)\]$/, '$1'),
    port,
    authorization: login === '' ? null : basic(login),
  };
}
