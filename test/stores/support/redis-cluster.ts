import type { RedisServer } from '../../harness/servers/redis-servers.ts';
import { ask, startRedisServer, untilSays } from '../../harness/servers/redis-servers.ts';

const slots = 16_384;
const primaries = 3;

export interface RedisCluster {
  /** Of the gateway: all nodes. */
  readonly url: string;
  /** Crashes the primary that has a replica; resolves as soon as that took over. */
  failOver(): Promise<void>;
  close(): Promise<void>;
}

/** Three primaries, of which the first has a replica; a node is given up after half a second. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const nodes: RedisServer[] = [];
  const close = async () => {
    for (const node of nodes.splice(0).reverse()) await node.close();
  };
  try {
    while (nodes.length < primaries + 1) {
      nodes.push(await startRedisServer(['cluster-enabled yes', 'cluster-node-timeout 500']));
    }
    const [first, ...others] = nodes as [RedisServer, ...RedisServer[]];
    for (const { port } of others) await ask(first.port, 'CLUSTER', 'MEET', '127.0.0.1', String(port));
    for (let index = 0; index < primaries; index += 1) {
      const range = [index, index + 1].map((part) => Math.floor((part * slots) / primaries));
      const [from = 0, end = slots] = range;
      await ask(nodes[index]?.port ?? 0, 'CLUSTER', 'ADDSLOTSRANGE', String(from), String(end - 1));
    }
    const replica = nodes[primaries] as RedisServer;
    const primaryId = JSON.parse(await ask(first.port, 'CLUSTER', 'MYID')) as string;
    await untilSays(replica.port, 'OK', 'CLUSTER', 'REPLICATE', primaryId);
    await untilSays(replica.port, 'master_link_status:up', 'INFO', 'replication');
    for (const { port } of nodes) await untilSays(port, 'cluster_state:ok', 'CLUSTER', 'INFO');
    return {
      url: `redis://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}?cluster=true`,
      failOver: async () => {
        await first.close();
        await untilSays(replica.port, 'role:master', 'INFO', 'replication');
        await untilSays(replica.port, 'cluster_state:ok', 'CLUSTER', 'INFO');
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
