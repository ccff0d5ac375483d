import { Resolver, lookup as systemLookup } from 'node:dns';
import { isIP } from 'node:net';
import { isLocalhostName } from '../../core/net/self-hosted-url.ts';
import type { HostAddress, NameFiles } from './name-files.ts';
import { systemNameFiles } from './name-files.ts';
import { askNameServers, isDenied } from './name-servers.ts';

/** Calls back once: addresses (at least one), or the error. `signal` firing gives up without a call back. */
export type HostLookup = (
  host: string,
  signal: AbortSignal,
  callback: (error: NodeJS.ErrnoException | null, addresses: readonly HostAddress[]) => void,
) => void;

/** After the first family has answered, the other gets this long (RFC 8305 section 3). */
const resolutionDelayMs = 50;

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
  done: (error: NodeJS.ErrnoException | null, addresses: readonly HostAddress[]) => void,
): void {
  systemLookup(host, { all: true }, (error, addresses) => {
    if (error !== null) return done(error, []);
    done(
      null,
      addresses.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 })),
    );
  });
}

/** One question to the system, and who waits for its answer. */
interface Asked {
  readonly sinceMs: number;
  readonly waiting: Set<Parameters<HostLookup>[2]>;
}

/** By name. */
const asked = new Map<string, Asked>();
/** Whoever comes later asks anew: a question may be lost on its way, and the system waits five seconds for it. */
const joinWithinMs = 1_000;

function askOnce(host: string): Asked {
  const known = asked.get(host);
  if (known !== undefined && performance.now() - known.sinceMs < joinWithinMs) return known;
  const question: Asked = { sinceMs: performance.now(), waiting: new Set() };
  asked.set(host, question);
  askSystem(host, (error, addresses) => {
    if (asked.get(host) === question) asked.delete(host);
    for (const callback of question.waiting) callback(error, addresses);
  });
  return question;
}

/**
 * The operating system's look-up: hosts file, search domains, all that operators expect of the addresses
 * they configure. It occupies one of two threads until it returns, whoever has left meanwhile. So it is not for names
 * that users choose, and those who want the same name wait for one answer.
 */
export const lookupBySystem: HostLookup = (host, signal, callback) => {
  const known = knownAddresses(host);
  if (known !== null) return queueMicrotask(() => callback(null, known));
  if (signal.aborted) return;
  const { waiting } = askOnce(host);
  const answer: typeof callback = (error, addresses) => {
    signal.removeEventListener('abort', leave);
    callback(error, addresses);
  };
  const leave = (): void => void waiting.delete(answer);
  waiting.add(answer);
  signal.addEventListener('abort', leave, { once: true });
};

/** Addresses of one name that are looked at and tried; a hostile zone can hold thousands. */
const maxAddresses = 32;

/**
 * The look-up for names that users choose: the hosts file, then the name servers over our own sockets, with the
 * search domains of the system. It occupies no thread and has no queue, so a name that never answers costs nobody
 * but its own caller. `nameServers`: those of the system when null.
 */
export function lookupWithoutThread(
  nameServers: readonly string[] | null,
  files: NameFiles = systemNameFiles(),
): HostLookup {
  return (host, signal, callback) => {
    const known = knownAddresses(host);
    if (known !== null) return queueMicrotask(() => callback(null, known));
    let reported = false;
    const report: typeof callback = (error, addresses) => {
      if (reported || signal.aborted) return;
      reported = true;
      callback(error, addresses);
    };
    const ask = async (): Promise<void> => {
      const { hosts, search } = await files.read();
      if (signal.aborted) return;
      const listed = hosts.get(withoutDot(host).toLowerCase());
      if (listed !== undefined) return report(null, listed);
      // A new one has read what the system says now.
      const servers = [...(nameServers ?? new Resolver().getServers())];
      askInTurn(servers, namesToAsk(host, search), signal, report);
    };
    // Users choose the names: whatever goes wrong over one ends that look-up, and not the process.
    ask().catch((error: unknown) => report(error instanceof Error ? error : new Error(String(error)), []));
  };
}

const withoutDot = (host: string): string => (host.endsWith('.') ? host.slice(0, -1) : host);

/**
 * The full names a host may stand for, in the order of trying. A name without a dot is one of this network first:
 * some top-level domains have addresses of their own. Any other is meant as it is, before search domains are tried.
 */
function namesToAsk(host: string, search: readonly string[]): readonly string[] {
  if (host.endsWith('.')) return [withoutDot(host)];
  const inSearch = search.map((domain) => `${host}.${domain}`);
  return host.includes('.') ? [host, ...inSearch] : [...inSearch, host];
}

/** Goes on while DNS denies that a name exists; any other failure is the answer. */
function askInTurn(
  servers: string[],
  [name, ...others]: readonly string[],
  signal: AbortSignal,
  callback: Parameters<HostLookup>[2],
): void {
  resolveBothFamilies(servers, name ?? '', signal, (error, addresses) => {
    const next = error !== null && isDenied(error) && others.length > 0 && !signal.aborted;
    if (next) askInTurn(servers, others, signal, callback);
    else callback(error, addresses.slice(0, maxAddresses));
  });
}

/** A and AAAA at once; whichever comes first waits `resolutionDelayMs` for the other. */
function resolveBothFamilies(
  servers: string[],
  host: string,
  signal: AbortSignal,
  callback: Parameters<HostLookup>[2],
): void {
  const found: HostAddress[] = [];
  const asking: (() => void)[] = [];
  let firstError: Error | null = null;
  let pending = 2;
  let finished = false;
  let delay: NodeJS.Timeout | undefined;

  const giveUp = (): void => {
    finished = true;
    clearTimeout(delay);
    for (const stop of asking) stop();
  };
  const finish = (): void => {
    if (finished) return;
    giveUp();
    signal.removeEventListener('abort', giveUp);
    callback(found.length > 0 ? null : firstError, found);
  };
  const take = (family: 4 | 6) => (error: Error | null, addresses: readonly string[]) => {
    pending -= 1;
    if (finished) return;
    if (error !== null) firstError ??= error;
    else for (const address of addresses.slice(0, maxAddresses)) found.push({ address, family });
    if (pending === 0) return finish();
    if (error === null) delay = setTimeout(finish, resolutionDelayMs);
  };
  signal.addEventListener('abort', giveUp, { once: true });
  for (const family of [4, 6] as const) asking.push(askNameServers(servers, host, family, take(family)));
}
