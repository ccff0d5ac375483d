/** Where a server is to listen, and what whoever can change it calls the two. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  readonly hostName: string;
  readonly portName: string;
}

interface Listening {
  readonly host: string;
  readonly port: number;
  readonly adminHost: string;
  readonly adminPort: number;
}

/** Of the API. */
export function apiAddress({ host, port }: Pick<Listening, 'host' | 'port'>): ListenAddress {
  return { host, port, hostName: 'GW_HOST', portName: 'PORT' };
}

/** Of probes, metrics and the admin API. */
export function adminAddress({
  adminHost: host,
  adminPort: port,
}: Pick<Listening, 'adminHost' | 'adminPort'>): ListenAddress {
  return { host, port, hostName: 'GW_ADMIN_HOST', portName: 'GW_ADMIN_PORT' };
}

interface Reason {
  readonly blames: 'host' | 'port';
  readonly text: string;
}

const noAddress: Reason = { blames: 'host', text: 'this machine has no such address' };
const noFamily: Reason = { blames: 'host', text: 'this machine has no addresses of this kind' };
const noName: Reason = { blames: 'host', text: 'the name has no address' };

/** By the codes of bind(2) and getaddrinfo(3), as Node has them. */
const reasons: ReadonlyMap<string, Reason> = new Map<string, Reason>([
  ['EADDRINUSE', { blames: 'port', text: 'the port is in use' }],
  ['EACCES', { blames: 'port', text: 'it is not allowed, as with ports below 1024' }],
  ['EADDRNOTAVAIL', noAddress],
  ['EAFNOSUPPORT', noFamily],
  ['EINVAL', noAddress],
  ['ENOTFOUND', noName],
  ['EAI_AGAIN', noName],
  ['EAI_FAIL', noName],
  ['EAI_NODATA', noName],
]);

/**
 * Why nothing listens there, in a line that names what to change first: in a start the same codes would be taken for
 * those of a store that cannot be reached.
 */
export function listenFailure({ host, port, hostName, portName }: ListenAddress, error: unknown): string {
  const at = `cannot listen on ${host.includes(':') ? `[${host}]` : host}:${port}`;
  const code = String((error as NodeJS.ErrnoException | null)?.code);
  const reason = reasons.get(code);
  if (reason !== undefined)
    return `${reason.blames === 'host' ? hostName : portName}: ${at}: ${reason.text} (${code}).`;
  return `${portName}, ${hostName}: ${at}: ${error instanceof Error ? error.message : String(error)}`;
}
