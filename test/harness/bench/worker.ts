import type { AddressInfo, Server } from 'node:net';
import { Server as SecureServer } from 'node:tls';

/** What a child says: first where it listens (empty if it serves nothing), then one answer for each message. */
export type Said = { readonly result: unknown } | { readonly problem: string };

/** The child's end of `startWorker`: says where it listens, then answers one message at a time. */
export function serveParent<Order>(server: Server | null, answer: (order: Order) => unknown): void {
  process.once('disconnect', () => process.exit(1)); // the benchmark was killed
  process.on('message', async (order: Order) => {
    try {
      say({ result: await answer(order) });
    } catch (error) {
      say({ problem: error instanceof Error ? error.message : String(error) });
    }
  });
  const scheme = server instanceof SecureServer ? 'https' : 'http';
  say({ result: server === null ? '' : `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

function say(said: Said): void {
  process.send?.(said);
}
