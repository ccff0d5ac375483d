import { isIP } from 'node:net';
import { setInterval } from 'node:timers';
import type { UpstreamCall } from '../../chat/ports.ts';
import type { OutboundPolicy } from '../../core/net/outbound-policy.ts';
import { residencyAllows } from '../../core/request/residency.ts';
import { AfterNextPoll } from './after-next-poll.ts';
import type { OpenSocket } from './connection.ts';
import type { OpenPool } from './connection-pool.ts';
import type { Connector } from './connector.ts';
import { OriginPool } from './origin-pool.ts';
import { ReadingTurns } from './reading-turns.ts';
import { ActiveCall, requestHead } from './upstream-call.ts';
import { connectionsOf } from './upstream-connections.ts';
import type { UpstreamHttp } from './upstream-http-port.ts';
import { UpstreamPools } from './upstream-pools.ts';
import type { UserSocketLimits } from './user-socket-limits.ts';

/** Idle sockets are looked at this often. */
const sweepMs = 500;

/** How an origin is connected to: an IP literal has no brackets there, and no server name. */
function openerTo(origin: string, connect: Connector): OpenSocket {
  const { hostname, protocol, port } = new URL(origin);
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  const named = isIP(bare) === 0 ? { servername: bare } : {};
  const target = { hostname: bare, protocol, port, ...named };
  return (read, done) => {
    let reached: string | null = null;
    const onReached = (address: string | null): void => {
      reached = address;
    };
    return connect({ ...target, onread: read, onReached }, (error, socket) => done(error, socket, reached));
  };
}

/** The `host` header of an origin. */
function hostOf({ origin }: UpstreamCall): string {
  return origin.slice(origin.indexOf('//') + 2);
}

/**
 * The only way to a provider: HTTP/1.1 of our own over guarded sockets. One request per socket at a time, redirects
 * never followed, nothing ever sent twice, no timer per call: the attempt holds the deadline.
 */
export function createUpstreamClient(policy: OutboundPolicy, limits: UserSocketLimits): UpstreamHttp {
  const monotonicMs = () => performance.now();
  const looked = new AfterNextPoll();
  const turns = new ReadingTurns();
  const openPool: OpenPool<OriginPool> = (origin, connect, settings) =>
    new OriginPool(openerTo(origin, connect), settings, monotonicMs, looked, turns);
  const pools = new UpstreamPools(openPool, policy, limits);

  const sweeper = setInterval(() => {
    const nowMs = monotonicMs();
    for (const [, pool] of pools.entries()) pool.sweep(nowMs);
  }, sweepMs).unref();

  return {
    send(call, listener) {
      if (!residencyAllows(call.residencyBound, call.residency)) {
        throw new Error('A call outside the residency of its request reached the socket.');
      }
      const lease = pools.take(call);
      const head = requestHead(call, hostOf(call));
      const run = new ActiveCall(head ?? '', call, listener, lease);
      // The caller has its control before anything is reported.
      if (lease === null) queueMicrotask(() => run.fail('no-room'));
      else if (head === null) queueMicrotask(() => run.fail('protocol'));
      else lease.pool.take(run);
      return run;
    },
    connections: () => connectionsOf(pools.entries()),
    close() {
      clearInterval(sweeper);
      return pools.close();
    },
  };
}
