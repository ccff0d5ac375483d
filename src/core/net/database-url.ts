import { percentDecoded } from './percent-decoded.ts';
import { queryParameters, unknownParameter } from './query-parameters.ts';

/**
 * What a database URL means, for every connection this program opens: two drivers read it, and neither is given
 * the text. The words are those of libpq's connection URIs, with the stricter reading of `sslmode` that `pg` has:
 * `prefer`, `require` and `verify-ca` check the certificate and the name as `verify-full` does, unless
 * `uselibpqcompat=true` asks for libpq's own meaning.
 */
export interface DatabaseTarget {
  /** At least one. Of several the one that takes writes is meant. */
  readonly hosts: readonly DatabaseHost[];
  /** Null: the name of the operating system's user. */
  readonly user: string | null;
  readonly password: string;
  /** Null: the name of the user. */
  readonly database: string | null;
  /** Null: ours, which says what the connection is for. */
  readonly applicationName: string | null;
  /** Server settings for the session, `-c name=value`. */
  readonly options: string | null;
  /** Null: no TLS. */
  readonly tls: DatabaseTls | null;
}

export interface DatabaseHost {
  /** A name, an address, or the directory of a Unix socket (begins with a slash). */
  readonly host: string;
  readonly port: number;
}

export interface DatabaseTls {
  /** `full`: chain and host name; `chain`: any name; `none`: encrypted only. */
  readonly verify: 'full' | 'chain' | 'none';
  /** PEM files. No root: those that Node trusts. */
  readonly rootCertPath: string | null;
  readonly certPath: string | null;
  readonly keyPath: string | null;
  readonly keyPassphrase: string | null;
  /** TLS begins at once, without asking first (Postgres 17). */
  readonly direct: boolean;
}

/** A database URL that cannot be used. The message is one sentence without any value of the URL that may be secret. */
export class DatabaseUrlError extends Error {}

const defaultPort = 5432;
const urlShape = /^postgres(?:ql)?:\/\/(?:([^/?#]*)@)?([^/?#@]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/s;

/** Parameters with a meaning here, beside those that `accepted` lists. */
const parameters = new Set([
  ...['host', 'port', 'user', 'password', 'dbname', 'application_name', 'options'],
  ...[
    'ssl',
    'sslmode',
    'sslrootcert',
    'sslcert',
    'sslkey',
    'sslpassword',
    'sslnegotiation',
    'uselibpqcompat',
  ],
]);

/**
 * Parameters of libpq that change nothing here, with the values for which that is true. Waits are bounded by our
 * own limits, and a single host is whatever it is.
 */
const accepted: Readonly<Record<string, RegExp>> = {
  client_encoding: /^(utf-?8|auto)$/i,
  channel_binding: /^(disable|prefer)$/,
  gssencmode: /^(disable|prefer)$/,
  target_session_attrs: /^(any|read-write|primary|prefer-standby)$/,
  connect_timeout: /^\d+$/,
  keepalives: /^[01]$/,
  keepalives_idle: /^\d+$/,
  keepalives_interval: /^\d+$/,
  keepalives_count: /^\d+$/,
  tcp_user_timeout: /^\d+$/,
};

type Query = ReadonlyMap<string, string>;

const decode = (text: string): string => percentDecoded(text, DatabaseUrlError);

function readQuery(text: string): Query {
  const query = queryParameters(text, DatabaseUrlError);
  for (const [name, value] of query) {
    if (parameters.has(name)) continue;
    const values = accepted[name];
    if (values === undefined) {
      throw new DatabaseUrlError(
        `has ${unknownParameter(name, text)}. Settings of the server go into options=-c%20name%3Dvalue.`,
      );
    }
    if (!values.test(value)) throw new DatabaseUrlError(`has a value of ${name} that is not supported.`);
  }
  return query;
}

const verifyStrictly = {
  disable: null,
  'no-verify': 'none',
  prefer: 'full',
  require: 'full',
  'verify-ca': 'full',
  'verify-full': 'full',
} as const;

/** What TLS has to prove; null: no TLS. */
function verification(query: Query, hasFiles: boolean): DatabaseTls['verify'] | null {
  const mode = query.get('sslmode') ?? (hasFiles ? 'verify-full' : modeOfSwitch(query));
  const compat = query.get('uselibpqcompat') ?? 'false';
  if (compat !== 'true' && compat !== 'false') throw unsupported('uselibpqcompat');
  if (!Object.hasOwn(verifyStrictly, mode)) throw unsupported('sslmode');
  const strict = verifyStrictly[mode as keyof typeof verifyStrictly];
  if (compat === 'false' || strict !== 'full' || mode === 'verify-full') return strict;
  const hasRoot = query.has('sslrootcert');
  if (query.get('sslrootcert') === 'system') return 'full';
  if (mode === 'verify-ca' && !hasRoot) {
    throw new DatabaseUrlError(
      'needs sslrootcert for sslmode=verify-ca: any name of a public CA would pass.',
    );
  }
  return hasRoot && mode !== 'prefer' ? 'chain' : 'none';
}

/** `ssl=true` and the like, from the time before `sslmode`. */
function modeOfSwitch(query: Query): string {
  switch (query.get('ssl')) {
    case undefined:
      return query.get('sslnegotiation') === 'direct' ? 'verify-full' : 'disable';
    case 'true':
    case '1':
      return 'verify-full';
    case 'false':
    case '0':
      return 'disable';
    case 'no-verify':
      return 'no-verify';
    default:
      throw unsupported('ssl');
  }
}

function unsupported(name: string): DatabaseUrlError {
  return new DatabaseUrlError(`has a value of ${name} that is not supported.`);
}

function readTls(query: Query, host: string): DatabaseTls | null {
  const root = query.get('sslrootcert') ?? null;
  const certPath = query.get('sslcert') ?? null;
  const keyPath = query.get('sslkey') ?? null;
  const verify = verification(query, root !== null || certPath !== null || keyPath !== null);
  const negotiation = query.get('sslnegotiation') ?? 'postgres';
  if (negotiation !== 'postgres' && negotiation !== 'direct') throw unsupported('sslnegotiation');
  if ((certPath === null) !== (keyPath === null)) {
    throw new DatabaseUrlError('has only one of sslcert and sslkey; they go together.');
  }
  if (verify === null && negotiation === 'direct') {
    throw new DatabaseUrlError('has sslnegotiation=direct without TLS.');
  }
  // As with libpq: nobody listens in on a Unix socket.
  if (verify === null || host.startsWith('/')) return null;
  return {
    verify,
    rootCertPath: root === 'system' ? null : root,
    certPath,
    keyPath,
    keyPassphrase: query.get('sslpassword') ?? null,
    direct: negotiation === 'direct',
  };
}

const hostAndPort = /^(\[[^\]]*\]|.*?)(?::(\d*))?$/;

/** A list with commas in either place, as libpq reads it: `a:1,b:2`, or `host=a,b&port=1,2`; one port serves all. */
function readHosts(place: string, query: Query): DatabaseHost[] {
  const placed = place.split(',').map((one) => hostAndPort.exec(one) ?? []);
  // The rest of a password with a bare slash would be looked up, and told, as a host.
  if (placed.some(([, host = '']) => host.includes(':') && !host.startsWith('['))) throw misshapen();
  const hosts = query.get('host')?.split(',') ?? placed.map(([, host = '']) => decode(host));
  const ports = query.get('port')?.split(',') ?? placed.map(([, , port = '']) => port);
  if (ports.length !== 1 && ports.length !== hosts.length) {
    throw new DatabaseUrlError('names as many ports as hosts, or one.');
  }
  if (hosts.length > 1) {
    if (hosts.some((host) => host === '' || host.startsWith('/'))) {
      throw new DatabaseUrlError('names several hosts, each of which needs a name or an address.');
    }
    if (!/^(read-write|primary)$/.test(query.get('target_session_attrs') ?? 'read-write')) {
      throw new DatabaseUrlError('names several hosts: of these target_session_attrs=read-write is meant.');
    }
  }
  return hosts.map((host, at) => ({
    host: host === '' ? 'localhost' : host.replace(/^\[(.+)\]$/, '$1'),
    port: readPort(ports[at] ?? ports[0] ?? ''),
  }));
}

function readPort(text: string): number {
  if (text === '') return defaultPort;
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535) throw unsupported('port');
  return port;
}

const misshapen = () =>
  new DatabaseUrlError(
    'must be postgres://user:password@host:port/database, special characters percent-encoded.',
  );

const textOrNull = (text: string | undefined): string | null =>
  text === undefined || text === '' ? null : text;

/** Throws DatabaseUrlError; its message continues a sentence that begins with the setting's name. */
export function parseDatabaseUrl(text: string): DatabaseTarget {
  const match = urlShape.exec(text);
  const [, login = '', place = '', path = '', search = ''] = match ?? [];
  if (match === null || path.includes('@')) throw misshapen();
  const query = readQuery(search);
  const colon = login.indexOf(':');
  const user = colon === -1 ? login : login.slice(0, colon);
  const password = colon === -1 ? '' : login.slice(colon + 1);
  const hosts = readHosts(place, query);
  return {
    hosts,
    user: textOrNull(query.get('user') ?? decode(user)),
    password: query.get('password') ?? decode(password),
    database: textOrNull(query.get('dbname') ?? decode(path)),
    applicationName: textOrNull(query.get('application_name')),
    options: textOrNull(query.get('options')),
    tls: readTls(query, hosts[0]?.host ?? ''),
  };
}
