import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { connectionName, peerName } from '../../core/net/client-network.ts';

/** What the kernel keeps of connections' bytes; those of which it keeps none are left out. */
export interface SocketQueues {
  /** Sent on the port's connections, and not acknowledged: by `peerName`. */
  readonly sent: ReadonlyMap<string, number>;
  /** Come on any connection, and not read: by `connectionName`. */
  readonly unread: ReadonlyMap<string, number>;
}

/**
 * Asks the kernel, which looks through its whole table and takes some milliseconds. Both are null where the system does
 * not tell, and throw where it cannot at the moment.
 */
export interface QueueReader {
  /** What the kernel takes of bytes that come and are not read, for each connection. */
  readonly mostUnreadBytes: number;
  /** Off the event loop. */
  read(localPort: number): Promise<SocketQueues | null>;
  readNow(localPort: number): SocketQueues | null;
}

/** Linux alone has it, for the process's own network; it takes no right to read it. */
const table = '/proc/self/net/tcp';
/** Not where IPv6 is off. */
const tableOfV6 = '/proc/self/net/tcp6';
/** The third number is the most; not everywhere readable. */
const receiveSizes = '/proc/sys/net/ipv4/tcp_rmem';
/** As Linux is shipped. */
const usualUnreadBytes = 6 * 1024 * 1024;
/** It will not be otherwise later; a lack of files or memory may be. */
const untold: ReadonlySet<unknown> = new Set(['ENOENT', 'EACCES', 'EPERM']);
/** FIN_WAIT1, LAST_ACK, CLOSING: the end of the stream is sent, and counts as a byte until it is acknowledged. */
const endUnacknowledged: ReadonlySet<string> = new Set(['04', '09', '0B']);
/**
 * Local port, remote address and port, state (but 0A, a listener), bytes in the send and the receive queue, not both
 * none.
 */
const queuedRow =
  /^ *\d+: [0-9A-F]+:(.{4}) ([0-9A-F]+):(.{4}) (?!0A)(..) (?!0{8}:0{8})([0-9A-F]{8}):([0-9A-F]{8})/gm;

/** Each 32-bit word is printed as a number of the machine's, the first byte last. */
function addressOf(hex: string): string {
  const words = (hex.match(/.{8}/g) ?? []).map((word) => (word.match(/../g) ?? []).reverse());
  const [first = []] = words;
  if (words.length === 1) return first.map((byte) => Number.parseInt(byte, 16)).join('.');
  return words.map(([a, b, c, d]) => `${a}${b}:${c}${d}`).join(':');
}

const hex = (text: string | undefined): number => Number.parseInt(text ?? '0', 16);

/** From the text of both tables. */
function queuesIn(tables: string, localPort: number): SocketQueues {
  const sent = new Map<string, number>();
  const unread = new Map<string, number>();
  for (const [, local, remote = '', remotePort, state = '', sentHex, unreadHex] of tables.matchAll(
    queuedRow,
  )) {
    const peer = [addressOf(remote), hex(remotePort)] as const;
    const sentBytes = hex(sentHex) - (endUnacknowledged.has(state) ? 1 : 0);
    if (sentBytes > 0 && hex(local) === localPort) sent.set(peerName(...peer), sentBytes);
    if (hex(unreadHex) > 0) unread.set(connectionName(hex(local), ...peer), hex(unreadHex));
  }
  return { sent, unread };
}

/** Throws unless the system does not tell. */
function asUntold(error: unknown): null {
  if (untold.has((error as NodeJS.ErrnoException).code)) return null;
  throw error;
}

function textNow(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    return asUntold(error);
  }
}

export const queueReader: QueueReader = {
  mostUnreadBytes: Number(textNow(receiveSizes)?.trim().split(/\s+/)[2]) || usualUnreadBytes,
  read: async (localPort) => {
    const v4 = await readFile(table, 'latin1').catch(asUntold);
    if (v4 === null) return null;
    return queuesIn(v4 + ((await readFile(tableOfV6, 'latin1').catch(asUntold)) ?? ''), localPort);
  },
  readNow: (localPort) => {
    const v4 = textNow(table);
    return v4 === null ? null : queuesIn(v4 + (textNow(tableOfV6) ?? ''), localPort);
  },
};
