import { LRUCache } from 'lru-cache';
import type { Dispatcher } from 'undici';
import { Pool } from 'undici';
import type {
  TransportFailure,
  TransportFailureKind,
  UpstreamCall,
  UpstreamControl,
  UpstreamListener,
  UpstreamTransport,
} from '../chat/ports.ts';
import type { OutboundPolicy } from '../core/outbound-policy.ts';
import { residencyAllows } from '../core/residency.ts';
import { decoderFor } from './content-decoder.ts';
import { ConnectError, createConnector } from './guarded-connector.ts';
import type { UpstreamConnections } from './upstream-connections.ts';
import { connectionsOf } from './upstream-connections.ts';

/** DNS, TCP and TLS together (docs/decisions): a black hole costs no more than this. */
const connectTimeoutMs = 5_000;
/** Idle sockets are kept a little shorter than common servers keep them, unless the vendor says otherwise. */
const keepAliveMs = 4_000;
const keepAliveMaxMs = 600_000;
/** Origins with open pools; users can name any, so the least recently used are let go. */
const maxOrigins = 1_000;
const maxHeaderBytes = 64 * 1024;

interface SocketErrorLike extends Error {
  readonly code?: string;
}

const failureKinds: Readonly<Record<string, TransportFailureKind>> = {
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

const failureTexts: Readonly<Record<TransportFailureKind, string>> = {
  'connect-refused': 'The connection was refused.',
  'connect-timeout': 'No connection within the time limit.',
  dns: 'The host name could not be resolved.',
  tls: 'The TLS handshake failed.',
  reset: 'The connection was closed before the answer was complete.',
  'forbidden-address': 'This address is not allowed by the outbound policy.',
  protocol: 'The answer is not valid HTTP.',
  'too-large': 'The answer is too large.',
  aborted: 'The call was aborted.',
};

/** A fixed text per kind: what the socket layer says may hold addresses that are nobody's business. */
export function transportFailure(kind: TransportFailureKind): TransportFailure {
  return { kind, message: failureTexts[kind] };
}

function kindOf(error: SocketErrorLike): TransportFailureKind {
  if (error instanceof ConnectError) return error.kind;
  const code = error.code ?? '';
  if (code.startsWith('HPE_')) return 'protocol';
  if (code.startsWith('ERR_TLS') || code.startsWith('ERR_SSL') || code.includes('CERT')) return 'tls';
  return failureKinds[code] ?? 'protocol';
}

class AbortedError extends Error {}

/** One dispatched call: undici's handler on one side, our listener on the other. */
class Dispatch implements Dispatcher.DispatchHandler, UpstreamControl {
  readonly #listener: UpstreamListener;
  #controller: Dispatcher.DispatchController | null = null;
  #decoder: ReturnType<typeof decoderFor> = null;
  #aborted = false;
  #over = false;

  constructor(listener: UpstreamListener) {
    this.#listener = listener;
  }

  /** False when it was aborted before it began: there is nothing to connect for. */
  begin(): boolean {
    if (this.#aborted) this.#finish(transportFailure('aborted'));
    return !this.#aborted;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#aborted) controller.abort(new AbortedError());
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return;
    const encoding = headers['content-encoding'];
    if (encoding !== undefined && encoding !== 'identity') {
      this.#decoder = decoderFor(String(encoding), {
        // The decoder works on when the call has failed; the listener must not hear of it.
        onData: (chunk) => {
          if (!this.#over) this.#listener.onData(chunk);
        },
        onEnd: () => this.#finish(null),
        onProblem: (kind) => {
          this.#finish(transportFailure(kind));
          controller.abort(new AbortedError());
        },
        pause: () => controller.pause(),
        resume: () => controller.resume(),
      });
      if (this.#decoder === null) {
        this.#finish(transportFailure('protocol'));
        controller.abort(new AbortedError());
        return;
      }
    }
    this.#listener.onHead(status, headers);
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
    this.#finish(transportFailure(aborted ? 'aborted' : kindOf(error)));
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
    this.#controller?.abort(new AbortedError());
  }

  #finish(failure: TransportFailure | null): void {
    if (this.#over) return;
    this.#over = true;
    if (failure === null) this.#listener.onEnd();
    else this.#listener.onFailure(failure);
  }
}

export interface UpstreamHttp extends UpstreamTransport {
  /** As they are now, by provider. */
  connections(): ReadonlyMap<string, UpstreamConnections>;
  /** Ends idle sockets; calls under way are cut. */
  close(): Promise<void>;
}

/**
 * The only file that opens a connection to a provider. Keep-alive pools per origin, one request per socket
 * at a time, redirects never followed, no timers of its own: the attempt holds the deadline.
 */
export function createUpstreamHttp(policy: OutboundPolicy): UpstreamHttp {
  const pools = new LRUCache<string, Pool>({
    max: maxOrigins,
    // Calls under way finish; only then does the evicted pool close.
    dispose: (pool) => void pool.close().catch(() => undefined),
  });
  const openPool = (call: UpstreamCall): Pool =>
    new Pool(call.origin, {
      connect: createConnector(policy, { userAddress: call.userAddress, connectTimeoutMs }),
      allowH2: false,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMaxMs,
      maxHeaderSize: maxHeaderBytes,
    });
  const poolOf = (call: UpstreamCall): Pool => {
    // A user's address and a vendor's are never the same pool: different rules opened their sockets.
    const name = `${call.provider} ${call.userAddress ? 'user' : 'vendor'} ${call.origin}`;
    let pool = pools.get(name);
    if (pool === undefined) {
      pool = openPool(call);
      pools.set(name, pool);
    }
    return pool;
  };
  return {
    send(call, listener) {
      if (!residencyAllows(call.residencyRequested, call.residency)) {
        throw new Error('A call outside the requested residency reached the socket.');
      }
      const dispatch = new Dispatch(listener);
      const options = { path: call.path, method: 'POST' as const, headers: call.headers, body: call.body };
      // The client polls its sockets once more before it writes on one that has served, but not for what came
      // in the present turn of the loop. From the next turn on it sees every end that is there already, and
      // connects anew: so nothing is written to a closed socket, and nothing ever has to be sent twice.
      setImmediate(() => {
        if (dispatch.begin()) poolOf(call).dispatch(options, dispatch);
      });
      return dispatch;
    },
    connections: () => connectionsOf(pools.entries()),
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
    },
  };
}
