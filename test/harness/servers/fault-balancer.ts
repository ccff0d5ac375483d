import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { GatewayUnderTest } from '../gateway/start-gateway.ts';
import { probe } from '../measure/fault-metrics.ts';

/** How often readiness is asked for; a cluster is slower, which GW_DRAIN_DELAY_SECONDS is for. */
const probeEveryMs = 50;

/** A TCP load balancer: new connections go to ready replicas in turn, open ones stay where they are. */
export interface Balancer {
  readonly url: string;
  /** Resolves once the replica gets connections. */
  add(replica: GatewayUnderTest): Promise<void>;
  remove(replica: GatewayUnderTest): void;
  close(): Promise<void>;
}

interface Backend {
  readonly replica: GatewayUnderTest;
  ready: boolean;
}

function join(client: Socket, replica: GatewayUnderTest): void {
  const { hostname, port } = new URL(replica.url);
  const server = connect(Number(port), hostname);
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    from.setNoDelay(true);
    from.pipe(to);
    from.on('error', () => to.destroy());
    from.on('close', () => to.destroySoon());
  }
}

export async function startBalancer(): Promise<Balancer> {
  const backends: Backend[] = [];
  let turn = 0;
  let closed = false;
  const listener = createServer((client) => {
    const ready = backends.filter((backend) => backend.ready);
    const backend = ready[turn++ % Math.max(1, ready.length)];
    if (backend === undefined) client.destroy();
    else join(client, backend.replica);
  });
  const look = async (backend: Backend): Promise<void> => {
    backend.ready = (await probe(backend.replica, '/readyz').catch(() => 0)) === 200;
  };
  const watch = async (): Promise<void> => {
    while (!closed) {
      await Promise.all(backends.map(look));
      await pause(probeEveryMs);
    }
  };
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const watching = watch();
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    add: async (replica) => {
      const backend = { replica, ready: false };
      while (!backend.ready) await look(backend);
      backends.push(backend);
    },
    remove: (replica) => {
      backends.splice(
        backends.findIndex((backend) => backend.replica === replica),
        1,
      );
    },
    close: async () => {
      closed = true;
      await watching;
      listener.close();
    },
  };
}
