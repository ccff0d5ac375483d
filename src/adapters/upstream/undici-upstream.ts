import type { Dispatcher } from 'undici';
import { Pool } from 'undici';
import type {
  TransportFailure,
  TransportFailureKind,
  UpstreamControl,
  UpstreamListener,
} from '../../chat/ports.ts';
import type { OutboundPolicy } from '../../core/net/outbound-policy.ts';
import { residencyAllows } from '../../core/request/residency.ts';
import { ConnectError } from './connect-error.ts';
import type { ConnectionPool, OpenPool } from './connection-pool.ts';
import { decoderFor, isCoded } from './content-decoder.ts';
import { maxHeadBytes } from './response-parser.ts';
import type { PoolStats } from './upstream-connections.ts';
import { connectionsOf } from './upstream-connections.ts';
import type { UpstreamHttp } from './upstream-http-port.ts';
import { connectingFailure, transportFailure } from './upstream-http-port.ts';
import type { PoolLease } from './upstream-pools.ts';
import { UpstreamPools } from './upstream-pools.ts';
import type { UserSocketLimits } from './user-socket-limits.ts';

/** Answers that say that the answer is still to come (1xx); one or two are in use. */
const maxInterimAnswers = 16;

const kindOfCode: Readonly<Record<string, TransportFailureKind>> = {
  ECONNREFUSED: 'connect-refused',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'reset',
  UND_ERR_CONNECT_TIMEOUT: 'connect-timeout',
  ETIMEDOUT: 'connect-timeout',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  UND_ERR_HEADERS_OVERFLOW: 'too-large',
};

function failureOf(error: NodeJS.ErrnoException): TransportFailure {
  if (error instanceof ConnectError) return connectingFailure(error);
  const { code = '' } = error;
  const isTls = code.startsWith('ERR_TLS') || code.startsWith('ERR_SSL') || code.includes('CERT');
  return transportFailure(isTls ? 'tls' : (kindOfCode[code] ?? 'protocol'));
}

type Lease = Pick<PoolLease<unknown>, 'release' | 'unpacks'> | null;

class AbortedError extends Error {}

/** One dispatched call: undici's handler on one side, our listener on the other. */
class Dispatch implements Dispatcher.DispatchHandler, UpstreamControl {
  /** Undici does not show its sockets. */
  readonly connectionName = null;
  readonly addressClass = null;
  isSent = false;
  readonly #listener: UpstreamListener;
  readonly #userAddress: boolean;
  readonly #lease: Lease;
  #controller: Dispatcher.DispatchController | null = null;
  #interimAnswers = 0;
  #decoder: ReturnType<typeof decoderFor> = null;
  #aborted = false;
  #over = false;

  /** `lease` is released once, when the call is over. */
  constructor(listener: UpstreamListener, userAddress: boolean, lease: Lease) {
    this.#listener = listener;
    this.#userAddress = userAddress;
    this.#lease = lease;
  }

  /** False when it was aborted before it began, or has no place: there is nothing to connect for. */
  begin(hasSeat: boolean): boolean {
    if (this.#aborted) this.#finish(transportFailure('aborted'));
    else if (!hasSeat) this.#finish(transportFailure('no-room'));
    return !this.#over;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#aborted) controller.abort(new AbortedError());
    else this.isSent = true;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) {
      this.#interimAnswers += 1;
      if (this.#interimAnswers > maxInterimAnswers) this.#stop(controller, 'protocol');
      return;
    }
    const encoding = String(headers['content-encoding'] ?? '');
    if (isCoded(encoding)) {
      if (this.#lease?.unpacks() === false) {
        this.#stop(controller, 'no-room');
        return;
      }
      this.#decoder = decoderFor(encoding, this.#userAddress, {
        // The decoder works on when the call has failed; the listener must not receive it.
        onData: (chunk) => {
          if (!this.#over) this.#listener.onData(chunk);
        },
        // More of the body may come behind the end of what was packed, or its end never. A whole one is left alone.
        onEnd: () => this.#stop(controller, null),
        onProblem: (kind) => this.#stop(controller, kind),
        pause: () => controller.pause(),
        resume: () => controller.resume(),
      });
      if (this.#decoder === null) {
        this.#stop(controller, 'unknown-coding');
        return;
      }
    }
    this.#listener.onHead({ status, contentType: String(headers['content-type'] ?? ''), headers });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#decoder !== null) this.#decoder.write(chunk);
    else if (!this.#over) this.#listener.onData(chunk);
  }

  onResponseEnd(): void {
    if (this.#decoder !== null) this.#decoder.end();
    else this.#finish(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const aborted = this.#aborted || error instanceof AbortedError;
    this.#finish(aborted ? transportFailure('aborted') : failureOf(error));
  }

  pause(): void {
    if (this.#decoder !== null) this.#decoder.pause();
    else this.#controller?.pause();
  }

  resume(): void {
    if (this.#decoder !== null) this.#decoder.resume();
    else this.#controller?.resume();
  }

  abort(): void {
    if (this.#over || this.#aborted) return;
    this.#aborted = true;
    // At once: it may have megabytes to unpack that nobody wants any more.
    this.#decoder?.destroy();
    this.#controller?.abort(new AbortedError());
  }

  /** Takes no more of this answer; null: that was all. */
  #stop(controller: Dispatcher.DispatchController, kind: TransportFailureKind | null): void {
    this.#finish(kind === null ? null : transportFailure(kind));
    controller.abort(new AbortedError());
  }

  #finish(failure: TransportFailure | null): void {
    if (this.#over) return;
    this.#over = true;
    this.#decoder?.destroy();
    this.#lease?.release();
    if (failure === null) this.#listener.onEnd();
    else this.#listener.onFailure(failure);
  }
}

/** A pool of undici's. It cannot close one idle socket alone, so all go while no call is under way. */
class UndiciPool implements ConnectionPool {
  readonly #open: () => Pool;
  #pool: Pool;

  constructor(origin: string, options: Pool.Options) {
    this.#open = () => new Pool(origin, options);
    this.#pool = this.#open();
  }

  get stats(): PoolStats {
    return this.#pool.stats;
  }

  get idleSinceMs(): number {
    const { connected, size } = this.#pool.stats;
    return connected > 0 && size === 0 ? 0 : Number.POSITIVE_INFINITY;
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#pool.dispatch(options, handler);
  }

  closeOldestIdle(): void {
    const closing = this.#pool;
    this.#pool = this.#open();
    void closing.destroy().catch(() => undefined);
  }

  destroy(): Promise<void> {
    return this.#pool.destroy();
  }
}

const openPool: OpenPool<UndiciPool> = (origin, connect, { keepAliveMs, longestKeepAliveMs }) =>
  new UndiciPool(origin, {
    connect,
    connections: null,
    allowH2: false,
    pipelining: 1,
    // No timers of its own: the attempt holds the deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: longestKeepAliveMs,
    maxHeaderSize: maxHeadBytes,
  });

/**
 * The way to providers until 0.1, kept for one release (`GW_UPSTREAM_CLIENT=undici`). Keep-alive pools per origin, one
 * request per socket at a time, redirects never followed, no timers of its own: the attempt holds the deadline.
 */
export function createUndiciUpstream(policy: OutboundPolicy, limits: UserSocketLimits): UpstreamHttp {
  const pools = new UpstreamPools(openPool, policy, limits);
  return {
    send(call, listener) {
      if (!residencyAllows(call.residencyBound, call.residency)) {
        throw new Error('A call outside the residency of its request reached the socket.');
      }
      const lease = pools.take(call);
      const dispatch = new Dispatch(listener, call.userAddress, lease);
      const { method, path, headers, body } = call;
      const options = { path, method, headers, body };
      // The client polls its sockets once more before it writes on one that has served, but not for what came
      // in the present turn of the loop. From the next turn on it sees every end that is there already, and
      // connects anew: so nothing is written to a closed socket, and nothing ever has to be sent twice.
      setImmediate(() => {
        if (dispatch.begin(lease !== null)) lease?.pool.dispatch(options, dispatch);
      });
      return dispatch;
    },
    connections: () => connectionsOf(pools.entries()),
    close: () => pools.close(),
  };
}
