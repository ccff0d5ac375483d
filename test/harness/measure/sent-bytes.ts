import { readFileSync } from 'node:fs';

/** Local and remote end, and what the kernel keeps for each of the machine's connections. */
function queuesOfAll(): { local: string; remote: string; sent: number; unread: number }[] {
  const lines = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/net/${name}`, 'latin1').split('\n'));
  return lines.flatMap((line) => {
    const [, local = '', remote = '', state, queues = ''] = line.trim().split(/\s+/);
    const [sent, unread] = queues.split(':').map((hex) => Number.parseInt(hex, 16));
    const isConnection = sent !== undefined && unread !== undefined && state !== '0A';
    return isConnection ? [{ local, remote, sent, unread }] : [];
  });
}

const ending = (port: number): string => `:${port.toString(16).toUpperCase().padStart(4, '0')}`;

/**
 * What the kernel keeps of the bytes that were sent from this port and not acknowledged, connections included whose
 * process has closed them.
 */
export function sentBytes(localPort: number): number {
  const own = queuesOfAll().filter(({ local }) => local.endsWith(ending(localPort)));
  return own.reduce((sum, { sent }) => sum + sent, 0);
}

/** What the kernel keeps of the bytes that came from this port and were not read. */
export function unreadBytes(remotePort: number): number {
  const own = queuesOfAll().filter(({ remote }) => remote.endsWith(ending(remotePort)));
  return own.reduce((sum, { unread }) => sum + unread, 0);
}
