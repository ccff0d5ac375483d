import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import underPressure from '@fastify/under-pressure';
import type {
  FastifyBaseLogger,
  FastifyHttpOptions,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
} from 'fastify';
import { fastify, LogController } from 'fastify';
import { errorBody } from '../core/error-body.ts';
import { HttpRequestError, NotFoundError, ServiceUnavailableError } from '../core/errors.ts';
import { acceptOnlyJson } from './body-parser.ts';
import { handleErrors, writeError } from './error-handler.ts';
import type { HttpTelemetry, Shortage } from './http-telemetry.ts';
import { watchRequests } from './http-telemetry.ts';
import type { Life } from './life.ts';
import { requestIdOf } from './request-id.ts';
import { allowedMethods } from './route-methods.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Monotonic milliseconds at which the request's headers had arrived. */
    enteredAtMs: number;
  }
}

/** Slow headers and slow bodies are cut; looked for this often. */
const headersTimeoutMs = 15_000;
const requestTimeoutMs = 30_000;
const connectionsCheckMs = 2_000;
/** Longer than the idle time of the usual load balancers (60 s), so that they close first. */
const keepAliveTimeoutMs = 75_000;
/** Model names in a path may be 256 characters, percent-encoded. */
const maxParamLength = 1024;
/** Refused clients come back after this. */
const retryAfterSeconds = '1';

export interface ServerLimits {
  readonly bodyLimitBytes: number;
  readonly trustedProxyHops: number;
  /** 0: not watched. */
  readonly maxEventLoopDelayMs: number;
  readonly maxHeapBytes: number;
}

const parserErrors: Readonly<Record<string, readonly [number, string, string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The request headers are too large.', 'headers_too_large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request did not arrive in time.', 'request_timeout'],
};

/** Answers what Node's HTTP parser refuses, in our envelope, and closes. */
function answerParserError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, message, code] = parserErrors[error.code ?? ''] ?? [
    400,
    'Malformed HTTP.',
    'malformed_http',
  ];
  const requestId = randomUUID();
  const body = JSON.stringify(errorBody(new HttpRequestError(status, message, code), requestId));
  const head = [
    `HTTP/1.1 ${status} Refused`,
    'content-type: application/json; charset=utf-8',
    `x-request-id: ${requestId}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/**
 * A Fastify instance with every limit set, our error writer, our body rule and the request id on each
 * answer. Routes are the caller's.
 */
export async function createServer(
  limits: ServerLimits,
  life: Life,
  log: FastifyBaseLogger,
  telemetry: HttpTelemetry,
): Promise<FastifyInstance> {
  const options: FastifyHttpOptions<Server> = {
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    // Nothing of ours logs through the request, and a child logger for each one costs a microsecond.
    childLoggerFactory: (logger) => logger,
    bodyLimit: limits.bodyLimitBytes,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    http: { headersTimeout: headersTimeoutMs, connectionsCheckingInterval: connectionsCheckMs },
    routerOptions: { maxParamLength },
    requestIdHeader: false,
    genReqId: (request) => requestIdOf(request, randomUUID),
    trustProxy: (_address, hop) => hop < limits.trustedProxyHops,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    clientErrorHandler: answerParserError,
    frameworkErrors: (_error, request, reply) => {
      reply.header('x-request-id', request.id);
      writeError(new NotFoundError('Unknown path.'), request as FastifyRequest, reply as FastifyReply, log);
    },
  };
  const app: FastifyInstance = fastify(options);
  app.decorateRequest('enteredAtMs', 0);
  app.addHook('onRequest', (request, reply, done) => {
    request.enteredAtMs = performance.now();
    reply.header('x-request-id', request.id);
    if (life.leaving) reply.header('connection', 'close');
    done();
  });
  watchRequests(app, telemetry);
  handleErrors(app, allowedMethods);
  acceptOnlyJson(app);
  await shedLoad(app, limits, telemetry);
  return app;
}

const shortages: Readonly<Record<string, Shortage>> = {
  eventLoopDelay: 'event_loop_delay',
  heapUsedBytes: 'heap',
};

/** Refuses with 503 before the event loop starves. Probes and metrics live on another listener. */
async function shedLoad(app: FastifyInstance, limits: ServerLimits, telemetry: HttpTelemetry): Promise<void> {
  await app.register(underPressure, {
    maxEventLoopDelay: limits.maxEventLoopDelayMs,
    maxHeapUsedBytes: limits.maxHeapBytes,
    pressureHandler: (_request, _reply, type) => {
      telemetry.requestShed(shortages[type] ?? 'other');
      throw new ServiceUnavailableError('The gateway is overloaded; try again.', {
        code: 'overloaded',
        headers: { 'retry-after': retryAfterSeconds },
        cause: type,
      });
    },
  });
}
