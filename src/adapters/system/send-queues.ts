import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { peerName } from '../../core/net/client-network.ts';

/**
 * What the kernel keeps of the bytes sent on a port's connections because their peers have not acknowledged it, by
 * `peerName`; peers that have taken everything are left out. The kernel looks through its whole table for it, which
 * takes some milliseconds. Both throw where the system does not tell.
 */
export interface SendQueues {
  /** Off the event loop. */
  read(localPort: number): Promise<ReadonlyMap<string, number>>;
  readNow(localPort: number): ReadonlyMap<string, number>;
}

/** Linux alone has it, for the process's own network; it takes no right to read it. */
const table = '/proc/self/net/tcp';
/** Not where IPv6 is off. */
const tableOfV6 = '/proc/self/net/tcp6';
/** FIN_WAIT1, LAST_ACK, CLOSING: the end of the stream is sent, and counts as a byte until it is acknowledged. */
const endUnacknowledged: ReadonlySet<string> = new Set(['04', '09', '0B']);

/** Each 32-bit word is printed as a number of the machine's, the first byte last. */
function addressOf(hex: string): string {
  const words = (hex.match(/.{8}/g) ?? []).map((word) => (word.match(/../g) ?? []).reverse());
  const [first = []] = words;
  if (words.length === 1) return first.map((byte) => Number.parseInt(byte, 16)).join('.');
  return words.map(([a, b, c, d]) => `${a}${b}:${c}${d}`).join(':');
}

/** From the text of both tables. */
export function sendQueuesIn(tables: string, localPort: number): ReadonlyMap<string, number> {
  const port = localPort.toString(16).toUpperCase().padStart(4, '0');
  // Remote address and port, state (but 0A, a listener), bytes in the send queue.
  const rows = tables.matchAll(
    new RegExp(
      `^ *\\d+: [0-9A-F]+:${port} ([0-9A-F]+):([0-9A-F]{4}) (?!0A)(..) (?!0{8})([0-9A-F]{8}):`,
      'gm',
    ),
  );
  const queues = new Map<string, number>();
  for (const [, address = '', peerPort = '', state = '', queued = ''] of rows) {
    const bytes = Number.parseInt(queued, 16) - (endUnacknowledged.has(state) ? 1 : 0);
    if (bytes > 0) queues.set(peerName(addressOf(address), Number.parseInt(peerPort, 16)), bytes);
  }
  return queues;
}

function readV6(): string {
  try {
    return readFileSync(tableOfV6, 'latin1');
  } catch {
    return '';
  }
}

export const sendQueues: SendQueues = {
  read: async (localPort) => {
    const v4 = await readFile(table, 'latin1');
    return sendQueuesIn(v4 + (await readFile(tableOfV6, 'latin1').catch(() => '')), localPort);
  },
  readNow: (localPort) => sendQueuesIn(readFileSync(table, 'latin1') + readV6(), localPort),
};
