import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import underPressure from '@fastify/under-pressure';
import type {
  FastifyBaseLogger,
  FastifyHttpOptions,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
} from 'fastify';
import { fastify, LogController } from 'fastify';
import type { LaterTurns } from '../chat/later-turn.ts';
import { draining, NotFoundError, overloaded } from '../core/errors.ts';
import type { RoutingTables } from '../core/tables/tables.ts';
import { handleErrors, writeError } from './answers/error-handler.ts';
import { letGoOfStalledReaders } from './answers/stalled-readers.ts';
import { countUnread } from './answers/unread-answers.ts';
import { smallBodyBytes } from './body/body-budget.ts';
import { acceptOnlyJson } from './body/body-parser.ts';
import { MeasuredMessage } from './body/measured-message.ts';
import { answerInTurn } from './connections/answer-in-turn.ts';
import { lookEveryMs } from './connections/kept-connections.ts';
import { checkNodeInternals } from './connections/node-internals.ts';
import { nodeHttpOptions, refuseOddRequests } from './connections/odd-requests.ts';
import { answerParserError } from './connections/parser-errors.ts';
import { connectionsCheckMs, headersTimeoutMs, requestTimeoutMs } from './connections/server-timeouts.ts';
import { Turns, turnsHeapShare } from './connections/turns.ts';
import type { HttpTelemetry, Shortage } from './http-telemetry.ts';
import type { Life } from './life.ts';
import { requestIdOf } from './request-id.ts';
import { allowedMethods } from './route-methods.ts';
import { watchRequests } from './watch-requests.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Monotonic milliseconds at which its headers had arrived and answers before it on its connection were out. */
    enteredAtMs: number;
    /** The tables it keeps to its end. */
    tables: RoutingTables;
  }
}

/**
 * What clients are told of how long an idle connection is kept. Those that listen, undici for instance, are gone before
 * the drain delay of the chart (5 s) is over, and so never write to a connection that is being closed.
 */
const toldIdleMs = 4_000;
/**
 * A proxy must close idle connections first, or it loses the request that it sends into a closing one. nginx keeps them
 * 60 s, Traefik 90, Google's balancers 600, Envoy an hour, AWS's as long as the chart tells it.
 */
const idleMs = 3_660_000;
/** Where connections become scarce; still longer than nginx keeps them. */
const scarceIdleMs = 75_000;
/** Of the connections that are allowed; and a number at which idle ones take 35 MB, 17 KB each. */
const scarceShare = 3 / 4;
const manyConnections = 2_048;
/** So many are kept free while there are idle ones to be closed. */
const spareShare = 1 / 32;
/** A peer that vanished without a word is noticed some seconds after this much silence. */
const tcpKeepAliveMs = 60_000;
/** Model names in a path may be 256 characters, percent-encoded. */
const maxParamLength = 1024;

export interface ServerLimits {
  readonly bodyLimitBytes: number;
  readonly trustedProxyHops: number;
  /** 0: not watched. */
  readonly maxEventLoopDelayMs: number;
  readonly heapBytes: number;
  readonly maxHeapBytes: number;
  /** Further connections are closed as they come. */
  readonly maxConnections: number;
}

/**
 * A Fastify instance with every limit set, our error writer, our body rule and the request id on each
 * answer. Routes are the caller's; `later` has the steps of large requests, of the whole process.
 */
export async function createServer(
  limits: ServerLimits,
  life: Life,
  later: LaterTurns,
  log: FastifyBaseLogger,
  telemetry: HttpTelemetry,
  tables: () => RoutingTables,
): Promise<FastifyInstance> {
  checkNodeInternals();
  const turns = new Turns(limits.heapBytes * turnsHeapShare);
  const options: FastifyHttpOptions<Server> = {
    // With a logger of its own, Fastify listens to the end of every response, to log it: 1 µs. What it says of a
    // request in trouble goes to ours all the same.
    logger: false,
    childLoggerFactory: () => log,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: limits.bodyLimitBytes,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: toldIdleMs,
    http: {
      ...nodeHttpOptions,
      IncomingMessage: MeasuredMessage,
      headersTimeout: headersTimeoutMs,
      connectionsCheckingInterval: connectionsCheckMs,
      keepAlive: true,
      keepAliveInitialDelay: tcpKeepAliveMs,
    },
    routerOptions: { maxParamLength },
    requestIdHeader: false,
    genReqId: (request) => requestIdOf(request, randomUUID),
    trustProxy: (_address, hop) => hop < limits.trustedProxyHops,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    clientErrorHandler: answerParserError,
    frameworkErrors: (_error, request, reply) => {
      // No hook has seen this one: its answer may have to wait all the same.
      if (reply.raw.socket === null && !turns.wait(request.raw, reply.raw, () => undefined)) return;
      reply.header('x-request-id', request.id);
      reply.header('x-gateway-tables-version', tables().hash);
      writeError(new NotFoundError('Unknown path.'), request as FastifyRequest, reply as FastifyReply, log);
    },
  };
  const app: FastifyInstance = fastify(options);
  app.decorateRequest('enteredAtMs', 0);
  app.decorateRequest('tables');
  app.decorateRequest('earlyBody', null);
  answerInTurn(app, turns);
  app.addHook('onRequest', (request, reply, done) => {
    request.enteredAtMs = performance.now();
    request.tables = tables();
    reply.header('x-request-id', request.id);
    reply.header('x-gateway-tables-version', request.tables.hash);
    if (life.phase !== 'serving') reply.header('connection', 'close');
    done();
  });
  watchRequests(app, telemetry, life, limits.trustedProxyHops > 0);
  refuseOddRequests(app);
  limitConnections(app.server, limits.maxConnections, life, telemetry);
  letGoOfStalledReaders(app.server, () => telemetry.readerStalled());
  life.unread.onLetGo = () => telemetry.readerStalled();
  handleErrors(app, log, (url) => allowedMethods(app, url));
  countUnread(app, life.unread);
  // Only the routes that ask for it take large bodies.
  app.addHook('onRoute', (route) => {
    route.bodyLimit ??= Math.min(smallBodyBytes, limits.bodyLimitBytes);
  });
  life.bodies.onShortage = (shortage) => telemetry.requestShed(shortage);
  const arriving = acceptOnlyJson(app, life.bodies, later);
  life.onCut = () => arriving.refuseAll(draining());
  await shedLoad(app, limits, life, telemetry);
  return app;
}

/** Before there are too many, idle ones are kept for less long, and then give way; what comes beyond is closed. */
function limitConnections(server: Server, most: number, life: Life, telemetry: HttpTelemetry): void {
  server.maxConnections = most;
  const kept = most - Math.ceil(most * spareShare);
  let nextLookMs = 0;
  const makeRoom = (): void => {
    const nowMs = performance.now();
    if (nowMs < nextLookMs) return;
    nextLookMs = nowMs + lookEveryMs;
    life.connections.makeRoom(kept, nowMs);
  };
  server.on('drop', () => {
    telemetry.requestShed('connections');
    makeRoom();
  });
  life.connections.watch(server);
  const many = Math.min(most * scarceShare, manyConnections);
  server.on('connection', () => {
    const keptMs = life.connections.count > many ? scarceIdleMs : idleMs;
    // Node adds it to what it tells.
    server.keepAliveTimeoutBuffer = keptMs - toldIdleMs;
    if (life.connections.count > many) makeRoom();
  });
}

const shortageOf: Readonly<Record<string, Shortage>> = {
  eventLoopDelay: 'event_loop_delay',
  heapUsedBytes: 'heap',
};

/** Refuses with 503 before the event loop starves. Probes and metrics live on another listener. */
async function shedLoad(
  app: FastifyInstance,
  limits: ServerLimits,
  life: Life,
  telemetry: HttpTelemetry,
): Promise<void> {
  await app.register(underPressure, {
    maxEventLoopDelay: limits.maxEventLoopDelayMs,
    maxHeapUsedBytes: limits.maxHeapBytes,
    pressureHandler: (_request, _reply, type) => {
      if (!life.isBusy) return;
      telemetry.requestShed(shortageOf[type] ?? 'other');
      throw overloaded(type);
    },
  });
  app.addHook('onRequest', (_request, _reply, done) => {
    if (!life.lacksMemory(0)) return done();
    telemetry.requestShed('memory');
    done(overloaded('memory'));
  });
}
