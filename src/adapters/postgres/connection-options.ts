import { isIP } from 'node:net';
import { userInfo } from 'node:os';
import type { SecureContext, ConnectionOptions as TlsOptions } from 'node:tls';
import type { DatabaseTls } from '../../core/net/database-url.ts';
import { DatabaseUrlError, parseDatabaseUrl } from '../../core/net/database-url.ts';
import type { OnCertificates } from '../system/certificate-files.ts';
import { CertificateFilesError, followCertificates } from '../system/certificate-files.ts';

/** After this long without a sign the network is asked whether the server is still there. */
export const keepAliveDelayMs = 10_000;

/**
 * One meaning of a database URL for both drivers: everything that says where to connect, as whom, and what TLS has
 * to prove is decided here, and each driver gets it in its own words. See docs/decisions/0014.
 */
export interface ConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  /** A function, so that it is in no dump of the options, and an empty one is not looked up elsewhere. */
  readonly password: () => string;
  readonly applicationName: string;
  readonly options: string | null;
  /** False: no TLS. */
  readonly tls: TlsOptions | false;
  readonly directTls: boolean;
}

/** Throws DatabaseUrlError. */
function certificatesOf(tls: DatabaseTls, onChange: OnCertificates | undefined): () => SecureContext {
  try {
    return followCertificates(tls, onChange);
  } catch (error) {
    if (!(error instanceof CertificateFilesError)) throw error;
    // The URL was read before, where its setting is known: this is said later, of either.
    const settings = 'DATABASE_URL or DATABASE_DIRECT_URL';
    throw new DatabaseUrlError(
      `${settings} names certificates or a key that cannot be used (${error.message}).`,
    );
  }
}

function tlsOptions(tls: DatabaseTls, host: string, onCertificates?: OnCertificates): TlsOptions {
  const options: TlsOptions = {
    // The name that the certificate must hold. An address is checked too, but never sent as a server name (RFC 6066 3).
    host,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    rejectUnauthorized: tls.verify !== 'none',
  };
  if (tls.verify === 'chain') options.checkServerIdentity = () => undefined;
  if (tls.rootCertPath === null && tls.certPath === null) return options;
  const get = certificatesOf(tls, onCertificates);
  // Both drivers copy the options for each connection, which asks anew.
  return Object.defineProperty(options, 'secureContext', { get, enumerable: true });
}

/** How many hosts the URL names. Throws DatabaseUrlError. */
export const hostCount = (url: string): number => parseDatabaseUrl(url).hosts.length;

/**
 * `purpose` follows our name in `application_name`; `at` is the place of the host in the URL. Throws DatabaseUrlError:
 * bad URL, or an unreadable file.
 */
function connectionOptions(
  url: string,
  purpose: string,
  at: number,
  onCertificates?: OnCertificates,
): ConnectionOptions {
  const target = parseDatabaseUrl(url);
  const place = target.hosts[at];
  if (place === undefined) throw new RangeError(`the URL names no host number ${at}`);
  const user = target.user ?? userInfo().username;
  return {
    ...place,
    user,
    database: target.database ?? user,
    password: () => target.password,
    applicationName: target.applicationName ?? `model-gateway${purpose}`,
    options: target.options,
    tls: target.tls === null ? false : tlsOptions(target.tls, place.host, onCertificates),
    directTls: target.tls?.direct ?? false,
  };
}

/** For `pg`. */
export function pgOptions(url: string, purpose = '', at = 0, onCertificates?: OnCertificates) {
  const { host, port, user, database, password, applicationName, options, tls, directTls } =
    connectionOptions(url, purpose, at, onCertificates);
  return {
    ...{ host, port, user, database, password, application_name: applicationName, ssl: tls },
    ...(options === null ? {} : { options }),
    ...(directTls ? { sslnegotiation: 'direct' as const } : {}),
  };
}

/**
 * For `postgres`. Host and port as lists, which the driver takes and its types do not know: a text is split at colons,
 * which IPv6 addresses have.
 */
export function postgresOptions(url: string, purpose = '', at = 0) {
  const { host, port, user, database, password, applicationName, options, tls, directTls } =
    connectionOptions(url, purpose, at);
  return {
    ...{ host: [host] as unknown as string, port: [port] as unknown as number },
    ...{ user, database, password, ssl: tls },
    ...(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : {}),
    ...(directTls ? { sslnegotiation: 'direct' } : {}),
    connection: { application_name: applicationName, ...(options === null ? {} : { options }) },
  };
}
