import { readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';

export interface HostAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** What the operating system's own look-up would read. */
export interface HostNames {
  /** By name, lower case. */
  readonly hosts: ReadonlyMap<string, readonly HostAddress[]>;
  /** Domains in which a short name may lie. */
  readonly search: readonly string[];
}

export interface NameFiles {
  read(): Promise<HostNames>;
}

/** As many as the C libraries of the common systems take (resolv.conf(5) has no bound of its own). */
const maxSearchDomains = 8;
const comment = /[#;].*$/;

/** Lines of words, without comments. */
function wordsOf(text: string): string[][] {
  const lines = text.split('\n').map((line) => line.replace(comment, '').trim());
  return lines.filter((line) => line !== '').map((line) => line.split(/\s+/));
}

/** hosts(5): an address and its names. A name may have several addresses. */
function readHosts(text: string): Map<string, HostAddress[]> {
  const hosts = new Map<string, HostAddress[]>();
  for (const [address = '', ...names] of wordsOf(text)) {
    const family = isIP(address);
    if (family !== 4 && family !== 6) continue;
    for (const name of names.map((given) => given.toLowerCase())) {
      hosts.set(name, [...(hosts.get(name) ?? []), { address, family }]);
    }
  }
  return hosts;
}

/** resolv.conf(5): the last `search` or `domain` counts. */
function readSearch(text: string): readonly string[] {
  const lines = wordsOf(text).filter(([word]) => word === 'search' || word === 'domain');
  const [, ...domains] = lines.at(-1) ?? [];
  const full = domains.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== '');
  return full.slice(0, maxSearchDomains);
}

/** One file and what it says, read again when it has changed. Empty while it cannot be read. */
class ParsedFile<T> {
  readonly #path: string;
  readonly #parse: (text: string) => T;
  #version = '';
  #value: T;

  constructor(path: string, parse: (text: string) => T) {
    this.#path = path;
    this.#parse = parse;
    this.#value = parse('');
  }

  async read(): Promise<T> {
    try {
      const { mtimeMs, ino, size } = await stat(this.#path);
      const version = `${mtimeMs} ${ino} ${size}`;
      if (version !== this.#version) {
        this.#value = this.#parse(await readFile(this.#path, 'utf8'));
        this.#version = version;
      }
    } catch {
      this.#value = this.#parse('');
      this.#version = '';
    }
    return this.#value;
  }
}

/** The hosts file and the resolver's configuration, as they are at the moment: the kubelet writes both. */
export function nameFiles(hostsPath: string, resolverPath: string): NameFiles {
  const hosts = new ParsedFile(hostsPath, readHosts);
  const search = new ParsedFile(resolverPath, readSearch);
  return { read: async () => ({ hosts: await hosts.read(), search: await search.read() }) };
}

/** Those of this host. */
export function systemNameFiles(): NameFiles {
  return nameFiles('/etc/hosts', '/etc/resolv.conf');
}
