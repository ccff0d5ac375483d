import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { classifyAddress } from '../../core/net/ip-class.ts';
import type { Endpoint, OutboundPolicy } from '../../core/net/outbound-policy.ts';
import type { HostLookup } from './host-lookup.ts';

/** A store or a service of ours, by the name it is configured with. */
export interface NamedEndpoint {
  readonly host: string;
  readonly port: number;
}

/** A database that fails over has its new address in DNS within seconds. */
const refreshMs = 15_000;
/** A name that has not answered by then no longer holds up the next one; name servers answer in milliseconds. */
const turnMs = 1_000;
/** At the start, names are waited for this long: their look-up goes on in the background. */
const firstLookupMs = 3_000;
/** Servers that sentinels and clusters have named; those of a cluster may change their addresses for months. */
const mostFound = 256;
/** Addresses of this host are read anew for a connection, but not for each of a thousand in a second. */
const interfacesMs = 1_000;

const keyOf = ({ host, port }: NamedEndpoint): string => `${host} ${port}`;

/**
 * Where this process and its stores listen, as it is at the moment: no user may speak to them through us. A
 * listener on every interface is one on each address of this host, which a pod knows only once it runs. Names
 * are resolved again and again; a name that does not resolve keeps the addresses it had.
 */
export class OwnEndpoints {
  readonly #names: readonly NamedEndpoint[];
  /** Found while running, oldest first. */
  readonly #found = new Map<string, NamedEndpoint>();
  readonly #lookup: HostLookup;
  readonly #stopping = new AbortController();
  readonly #resolved = new Map<NamedEndpoint, readonly Endpoint[]>();
  /** Look-ups under way: a name that hangs holds one thread, not one more each time. */
  readonly #asked = new Set<NamedEndpoint>();
  readonly #listeners: Endpoint[] = [];
  /** Of the next refresh. */
  #timer: NodeJS.Timeout | null = null;
  #interfaces: readonly string[] = [];
  #interfacesAtMs = Number.NEGATIVE_INFINITY;

  constructor(names: readonly NamedEndpoint[], lookup: HostLookup) {
    this.#names = names;
    this.#lookup = lookup;
  }

  /** Resolves once all names were looked up, or after three seconds. */
  async start(): Promise<void> {
    let patience: NodeJS.Timeout | undefined;
    const waited = new Promise<void>((resolve) => {
      patience = setTimeout(resolve, firstLookupMs);
    });
    await Promise.race([this.#refresh(), waited]);
    clearTimeout(patience);
  }

  stop(): void {
    this.#stopping.abort();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** A listener of ours; `address` is an IP literal, a wildcard included. */
  addListener(endpoint: Endpoint): void {
    this.#listeners.push(endpoint);
  }

  /** A store of ours that came to be known while running; again has no effect. */
  addName(endpoint: NamedEndpoint): void {
    const key = keyOf(endpoint);
    if (this.#found.has(key)) return;
    const oldest = this.#found.size < mostFound ? undefined : this.#found.entries().next().value;
    if (oldest !== undefined) {
      this.#found.delete(oldest[0]);
      this.#resolved.delete(oldest[1]);
    }
    this.#found.set(key, endpoint);
    // At once for an address, which is what sentinels and clusters mostly name.
    if (isIP(endpoint.host) === 0) void this.#turnOf(endpoint);
    else this.#resolved.set(endpoint, [{ address: endpoint.host, port: endpoint.port }]);
  }

  current(): readonly Endpoint[] {
    const wildcards = this.#listeners.filter(({ address }) => classifyAddress(address) === 'unroutable');
    const everywhere = wildcards.flatMap(({ port }) =>
      this.#hostAddresses().map((address) => ({ address, port })),
    );
    return [...this.#listeners, ...everywhere, ...[...this.#resolved.values()].flat()];
  }

  /** The policy with these endpoints, asked for at each decision. */
  guard(policy: OutboundPolicy): OutboundPolicy {
    const current = (): readonly Endpoint[] => this.current();
    return {
      ...policy,
      get ownEndpoints() {
        return current();
      },
    };
  }

  #isKnown(name: NamedEndpoint): boolean {
    return this.#names.includes(name) || this.#found.get(keyOf(name)) === name;
  }

  #hostAddresses(): readonly string[] {
    const nowMs = performance.now();
    if (nowMs - this.#interfacesAtMs < interfacesMs) return this.#interfaces;
    this.#interfacesAtMs = nowMs;
    this.#interfaces = Object.values(networkInterfaces()).flatMap((addresses = []) =>
      addresses.map(({ address }) => address),
    );
    return this.#interfaces;
  }

  /** One name after the other: the system's look-up has two threads, and vendors need the other one. */
  async #refresh(): Promise<void> {
    for (const name of [...this.#names, ...this.#found.values()]) {
      if (!this.#asked.has(name)) await this.#turnOf(name);
      if (this.#stopping.signal.aborted) return;
    }
    this.#timer = setTimeout(() => void this.#refresh(), refreshMs);
    this.#timer.unref();
  }

  /** Resolves when the name has answered or its turn is over; a later answer counts where the name still does. */
  #turnOf(name: NamedEndpoint): Promise<void> {
    this.#asked.add(name);
    return new Promise((resolve) => {
      const turn = setTimeout(resolve, turnMs);
      turn.unref();
      this.#lookup(name.host, this.#stopping.signal, (error, found) => {
        clearTimeout(turn);
        this.#asked.delete(name);
        const endpoints = error === null ? found.map(({ address }) => ({ address, port: name.port })) : [];
        if (endpoints.length > 0 && this.#isKnown(name)) this.#resolved.set(name, endpoints);
        resolve();
      });
    });
  }
}
