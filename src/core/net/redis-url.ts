import { percentDecoded } from './percent-decoded.ts';
import { queryParameters, unknownParameter } from './query-parameters.ts';

/**
 * What `REDIS_URL` means. One server: `redis://user:password@host:6379/0`, `rediss://` with TLS. Several hosts are a
 * list with commas: sentinels where `sentinel` names the primary they watch, nodes of a cluster where `cluster=true`.
 * The other parameters are the words of redis-cli.
 */
export interface RedisTarget {
  readonly kind: 'server' | 'sentinel' | 'cluster';
  /** The server, the sentinels, or nodes of the cluster by which the others are found; at least one. */
  readonly hosts: readonly RedisHost[];
  /** Whom the sentinels watch; null unless the hosts are sentinels. */
  readonly primaryName: string | null;
  /** Null: the default user. */
  readonly user: string | null;
  readonly password: string | null;
  readonly database: number;
  /** The same at the sentinels. */
  readonly sentinelUser: string | null;
  readonly sentinelPassword: string | null;
  /** Null: no TLS. With TLS the chain and the name are always checked. */
  readonly tls: RedisTls | null;
}

export interface RedisHost {
  /** A name or an address, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
}

export interface RedisTls {
  /** PEM files. No root: those that Node trusts. */
  readonly rootCertPath: string | null;
  readonly certPath: string | null;
  readonly keyPath: string | null;
  /** The name that every certificate holds; null: the name or address that is connected to. */
  readonly serverName: string | null;
}

/** A REDIS_URL that cannot be used. The message is one sentence without any value of the URL that may be secret. */
export class RedisUrlError extends Error {}

const serverPort = 6379;
const sentinelPort = 26_379;
const urlShape = /^redis(s?):\/\/(?:([^/?#]*)@)?([^/?#@]+)(?:\/(\d*))?(?:\?([^#]*))?$/s;
const hostShape = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d+))?$/;

const parameters = new Set([
  ...['sentinel', 'sentinel_user', 'sentinel_password', 'cluster'],
  ...['cacert', 'cert', 'key', 'sni'],
]);

type Query = ReadonlyMap<string, string>;

function readQuery(text: string): Query {
  const query = queryParameters(text, RedisUrlError);
  for (const name of query.keys()) {
    if (!parameters.has(name)) {
      throw new RedisUrlError(`has ${unknownParameter(name, text)}.`);
    }
  }
  return query;
}

const decode = (text: string): string => percentDecoded(text, RedisUrlError);

function readKind(query: Query): RedisTarget['kind'] {
  const cluster = query.get('cluster') ?? 'false';
  if (cluster !== 'true' && cluster !== 'false')
    throw new RedisUrlError('has cluster, which is true or false.');
  const sentinel = query.get('sentinel');
  if (sentinel === '') throw new RedisUrlError('has sentinel without the name of the primary.');
  if (cluster === 'true' && sentinel !== undefined) {
    throw new RedisUrlError('has both sentinel and cluster; sentinels do not watch clusters.');
  }
  if (sentinel === undefined && (query.has('sentinel_user') || query.has('sentinel_password'))) {
    throw new RedisUrlError('has credentials for sentinels, but no sentinel=NAME.');
  }
  if (cluster === 'true') return 'cluster';
  return sentinel === undefined ? 'server' : 'sentinel';
}

function readHosts(text: string, kind: RedisTarget['kind']): RedisHost[] {
  const hosts = text.split(',').map((one) => {
    const [, address, name, port] = hostShape.exec(one) ?? [];
    const host = address ?? name;
    if (host === undefined) throw new RedisUrlError('must name host:port, an IPv6 address in brackets.');
    const number = port === undefined ? (kind === 'sentinel' ? sentinelPort : serverPort) : Number(port);
    if (number < 1 || number > 65_535) throw new RedisUrlError('has a port that is none.');
    return { host, port: number };
  });
  if (kind === 'server' && hosts.length > 1) {
    throw new RedisUrlError('names several hosts: say sentinel=NAME or cluster=true.');
  }
  return hosts;
}

function readTls(query: Query, isTls: boolean): RedisTls | null {
  const names = ['cacert', 'cert', 'key', 'sni'];
  if (!isTls && names.some((name) => query.has(name))) {
    throw new RedisUrlError('has certificates without TLS: it begins with rediss:// then.');
  }
  if (query.has('cert') !== query.has('key')) {
    throw new RedisUrlError('has only one of cert and key; they go together.');
  }
  if (!isTls) return null;
  return {
    rootCertPath: query.get('cacert') ?? null,
    certPath: query.get('cert') ?? null,
    keyPath: query.get('key') ?? null,
    serverName: query.get('sni') ?? null,
  };
}

const textOrNull = (text: string): string | null => (text === '' ? null : text);

/** Throws RedisUrlError; its message continues a sentence that begins with the setting's name. */
export function parseRedisUrl(text: string): RedisTarget {
  const match = urlShape.exec(text);
  if (match === null) {
    throw new RedisUrlError(
      'must be redis://user:password@host:port/database, special characters percent-encoded.',
    );
  }
  const [, secure = '', login = '', place = '', path = '', search = ''] = match;
  const query = readQuery(search);
  const kind = readKind(query);
  const database = Number(path);
  if (kind === 'cluster' && database !== 0)
    throw new RedisUrlError('names a database, which a cluster lacks.');
  const colon = login.indexOf(':');
  return {
    kind,
    hosts: readHosts(place, kind),
    primaryName: query.get('sentinel') ?? null,
    user: textOrNull(decode(colon === -1 ? login : login.slice(0, colon))),
    password: colon === -1 ? null : textOrNull(decode(login.slice(colon + 1))),
    database,
    sentinelUser: query.get('sentinel_user') ?? null,
    sentinelPassword: query.get('sentinel_password') ?? null,
    tls: readTls(query, secure === 's'),
  };
}
