import { Resolver, lookup as systemLookup } from 'node:dns';
import { isIP } from 'node:net';
import { isLocalhostName } from '../core/self-hosted-url.ts';

export interface HostAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Calls back once: addresses (at least one), or the error. `signal` firing gives up without a call back. */
export type HostLookup = (
  host: string,
  signal: AbortSignal,
  callback: (error: Error | null, addresses: readonly HostAddress[]) => void,
) => void;

/** After the first family has answered, the other gets this long (RFC 8305 section 3). */
const resolutionDelayMs = 50;
/** One try of one name server; the caller's connect budget bounds the whole. */
const serverTimeoutMs = 1500;
const serverTries = 2;

/** RFC 6761 6.3: never asked of a name server, which could answer anything. */
const loopbackAddresses: readonly HostAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** Addresses that need no look-up: literals and names of this host. */
function knownAddresses(host: string): readonly HostAddress[] | null {
  const family = isIP(host);
  if (family === 4 || family === 6) return [{ address: host, family }];
  return isLocalhostName(host) ? loopbackAddresses : null;
}

function askSystem(
  host: string,
  done: (error: Error | null, addresses: readonly HostAddress[]) => void,
): void {
  systemLookup(host, { all: true }, (error, addresses) => {
    if (error !== null) return done(error, []);
    done(
      null,
      addresses.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 })),
    );
  });
}

/**
 * The operating system's look-up: hosts file, search domains, all that operators expect of the addresses
 * they configure. It occupies a thread until it returns, so it is not for names that users choose.
 */
export const lookupBySystem: HostLookup = (host, signal, callback) => {
  const known = knownAddresses(host);
  if (known !== null) return queueMicrotask(() => callback(null, known));
  askSystem(host, (error, addresses) => {
    if (!signal.aborted) callback(error, addresses);
  });
};

/**
 * System look-ups of user-chosen names run one at a time: libuv gives look-ups two of its threads, and the
 * other one stays free for the operator's addresses. Those that wait give up with their connect budget.
 */
const waitingForSystem: (() => void)[] = [];
let systemBusy = false;

function askSystemInTurn(host: string, signal: AbortSignal, callback: Parameters<HostLookup>[2]): void {
  const start = (): void => {
    if (signal.aborted) {
      next();
      return;
    }
    systemBusy = true;
    askSystem(host, (error, addresses) => {
      next();
      if (!signal.aborted) callback(error, addresses);
    });
  };
  const next = (): void => {
    systemBusy = false;
    waitingForSystem.shift()?.();
  };
  if (systemBusy) waitingForSystem.push(start);
  else start();
}

/** DNS has answered, and the answer is no. */
const deniedCodes = new Set(['ENOTFOUND', 'ENODATA']);

/**
 * The look-up for names that users choose. Asks the name servers over our own sockets, so that a name that
 * never answers holds no thread and no other tenant waits behind it. Only a name that DNS denies at once is
 * put to the operating system, which knows the hosts file and the search domains of a cluster.
 * `nameServers`: those of the system when null.
 */
export function lookupWithoutThread(nameServers: readonly string[] | null): HostLookup {
  return (host, signal, callback) => {
    const known = knownAddresses(host);
    if (known !== null) return queueMicrotask(() => callback(null, known));
    const resolver = new Resolver({ timeout: serverTimeoutMs, tries: serverTries });
    if (nameServers !== null) resolver.setServers(nameServers);
    resolveBothFamilies(resolver, host, signal, (error, addresses) => {
      if (error !== null && deniedCodes.has(codeOf(error))) askSystemInTurn(host, signal, callback);
      else callback(error, addresses);
    });
  };
}

function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? '';
}

/** A and AAAA at once; whichever comes first waits `resolutionDelayMs` for the other. */
function resolveBothFamilies(
  resolver: Resolver,
  host: string,
  signal: AbortSignal,
  callback: Parameters<HostLookup>[2],
): void {
  const found: HostAddress[] = [];
  let firstError: Error | null = null;
  let pending = 2;
  let finished = false;
  let delay: NodeJS.Timeout | undefined;

  const finish = (): void => {
    if (finished) return;
    finished = true;
    clearTimeout(delay);
    signal.removeEventListener('abort', giveUp);
    if (pending > 0) resolver.cancel();
    callback(found.length > 0 ? null : firstError, found);
  };
  const giveUp = (): void => {
    finished = true;
    clearTimeout(delay);
    resolver.cancel();
  };
  const take = (family: 4 | 6) => (error: Error | null, addresses: readonly string[]) => {
    pending -= 1;
    if (finished) return;
    if (error !== null) firstError ??= error;
    else for (const address of addresses) found.push({ address, family });
    if (pending === 0) return finish();
    if (error === null) delay = setTimeout(finish, resolutionDelayMs);
  };
  signal.addEventListener('abort', giveUp, { once: true });
  resolver.resolve4(host, take(4));
  resolver.resolve6(host, take(6));
}
