import { classifyAddress } from './ip-class.ts';

/** Longest base_url: room for any real address, and far below what a header or an index would mind. */
export const maxUrlLength = 2048;
/** RFC 1035 2.3.4. */
const maxHostLength = 253;
/** Of a host, the dot that may end it, and a port. */
const maxAuthorityLength = maxHostLength + '.:65535'.length;
const noHost = 'must name a valid host.';

export type ParsedSelfHostedUrl =
  | { readonly ok: true; readonly url: string }
  /** `message` fits behind the name of the field. */
  | { readonly ok: false; readonly message: string };

const refuse = (message: string): ParsedSelfHostedUrl => ({ ok: false, message });

/** RFC 6761 6.3: names that mean this host, whatever DNS says. */
export function isLocalhostName(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost');
}

function mayUseHttp(host: string): boolean {
  const ipClass = classifyAddress(host);
  if (ipClass === null) return isLocalhostName(host);
  return ipClass === 'loopback' || ipClass === 'private' || ipClass === 'link-local';
}

/** What the URL parser would repair in silence: what the user typed must be what we connect to. */
function oddity(text: string): string | null {
  if (text.length > maxUrlLength) return `must be at most ${maxUrlLength} characters.`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\u0000-\u0020\u007f\\]/.test(text))
    return 'must not contain spaces, control characters or backslashes.';
  const [, authority] = /^https?:\/\/([^/]+)/i.exec(text) ?? [];
  if (authority === undefined) return 'must be an absolute http or https URL.';
  if (/[?#]/.test(text)) return 'must not have a query or a fragment.';
  // Before it is parsed: what that costs grows with the square of a label's letters.
  if (authority.length > maxAuthorityLength) return noHost;
  return null;
}

function splitHost(hostname: string): { readonly shown: string; readonly bare: string } {
  // A trailing dot only says that the name is absolute; TLS server names must not have it.
  const shown = hostname.endsWith('.') ? hostname.slice(0, -1) : hostname;
  return { shown, bare: shown.startsWith('[') ? shown.slice(1, -1) : shown };
}

/**
 * Checks a self_hosted base_url (SPEC 4.2): https, or http when the host is `localhost`, a `*.localhost`
 * name, or a private, loopback or link-local IP address. Decided on the parsed host, never on the text, so
 * that every spelling of an address is the same address. The returned URL has the host in canonical form
 * and the path as given.
 */
export function parseSelfHostedUrl(text: string): ParsedSelfHostedUrl {
  const odd = oddity(text);
  if (odd !== null) return refuse(odd);
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return refuse('must be an absolute http or https URL.');
  }
  if (url.username !== '' || url.password !== '' || /^[^:]+:\/\/[^/]*@/.test(text)) {
    return refuse('must not contain a user name or password.');
  }
  if (url.port === '0') return refuse('must not use port 0.');
  const { shown, bare } = splitHost(url.hostname);
  if (bare === '' || bare.length > maxHostLength || bare.split('.').includes('')) {
    return refuse(noHost);
  }
  if (url.protocol === 'http:' && !mayUseHttp(bare)) {
    return refuse(
      'must use https unless the host is localhost, a *.localhost name, or a private, loopback or link-local IP address. Another name may lead anywhere: give the IP address behind it.',
    );
  }
  const port = url.port === '' ? '' : `:${url.port}`;
  const path = url.pathname === '/' && !text.endsWith('/') ? '' : url.pathname;
  return { ok: true, url: `${url.protocol}//${shown}${port}${path}` };
}

function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (end > 0 && path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

/**
 * Where a self_hosted call goes: a base_url without a path gets `/v1`, any other is used as it is.
 * Takes a URL that `parseSelfHostedUrl` returned; throws TypeError for one that is no URL.
 */
export function selfHostedEndpoint(baseUrl: string): { readonly origin: string; readonly prefix: string } {
  const url = new URL(baseUrl);
  const prefix = withoutTrailingSlashes(url.pathname);
  return { origin: url.origin, prefix: prefix === '' ? '/v1' : prefix };
}

/**
 * Where a vendor's address begins; the vendor's own path, `/v1/…` included, is added to `prefix`. A
 * trailing `/v1` is dropped, since vendors and their SDKs document the address both ways.
 */
export function vendorEndpoint(baseUrl: string): { readonly origin: string; readonly prefix: string } {
  const url = new URL(baseUrl);
  const path = withoutTrailingSlashes(url.pathname);
  return { origin: url.origin, prefix: path.endsWith('/v1') ? path.slice(0, -'/v1'.length) : path };
}
