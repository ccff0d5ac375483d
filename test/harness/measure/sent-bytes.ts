import { readFileSync } from 'node:fs';

/**
 * What the kernel keeps of the bytes that were sent from this port and not acknowledged, connections included whose
 * process has closed them.
 */
export function sentBytes(localPort: number): number {
  const port = localPort.toString(16).toUpperCase().padStart(4, '0');
  const lines = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/net/${name}`, 'latin1').split('\n'));
  let bytes = 0;
  for (const line of lines) {
    const [, local, , state, queues] = line.trim().split(/\s+/);
    const isListening = state === '0A';
    if (local?.endsWith(`:${port}`) && !isListening) bytes += Number.parseInt(queues?.slice(0, 8) ?? '0', 16);
  }
  return bytes;
}
