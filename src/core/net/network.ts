import type { Cidr } from './ip-class.ts';
import { isInCidr, parseCidr } from './ip-class.ts';

/** A network, on one port or (null) on all of them. */
export interface Network {
  readonly cidr: Cidr;
  readonly port: number | null;
}

/** `[fd00::/8]:8000`, `[fd00::/8]`, or a CIDR and a port; a colon alone would be part of an IPv6 address. */
const networkForm = /^(?:\[([^[\]]+)\]|([^:]+|[^[\]]+\/\d+))(?::(\d{1,5}))?$/;
const largestPort = 65_535;

/** Null when the text is neither a network (or one address) nor a network with a port. */
export function parseNetwork(text: string): Network | null {
  const everywhere = parseCidr(text);
  if (everywhere !== null) return { cidr: everywhere, port: null };
  const [, bracketed, bare, portText] = networkForm.exec(text.trim()) ?? [];
  const cidr = parseCidr(bracketed ?? bare ?? '');
  if (cidr === null) return null;
  if (portText === undefined) return { cidr, port: null };
  const port = Number(portText);
  return port >= 1 && port <= largestPort ? { cidr, port } : null;
}

/** Of a list with commas. Throws RangeError naming the network that cannot be read. */
export function readNetworks(list: string): readonly Network[] {
  const texts = list.split(',').filter((text) => text.trim() !== '');
  return texts.map((text) => {
    const network = parseNetwork(text);
    if (network !== null) return network;
    throw new RangeError(
      `"${text.trim()}" is not a network such as 10.0.0.0/8, 10.0.0.0/8:8000 or [fd00::/8]:8000.`,
    );
  });
}

export function isInNetwork(address: string, port: number, network: Network): boolean {
  return (network.port === null || network.port === port) && isInCidr(address, network.cidr);
}
