import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { fastify, LogController } from 'fastify';
import type { TablesStatus } from '../../adapters/tables/last-good-tables.ts';
import type { LaterTurns } from '../../chat/later-turn.ts';
import type { Clock } from '../../chat/ports.ts';
import { NotFoundError } from '../../core/errors.ts';
import { handleErrors, writeError } from '../answers/error-handler.ts';
import { BodyBudget } from '../body/body-budget.ts';
import { acceptOnlyJson, releaseBody } from '../body/body-parser.ts';
import { MeasuredMessage } from '../body/measured-message.ts';
import { answerInTurn } from '../connections/answer-in-turn.ts';
import { keepNewest } from '../connections/newest-connections.ts';
import { nodeHttpOptions, refuseOddRequests } from '../connections/odd-requests.ts';
import { answerParserError } from '../connections/parser-errors.ts';
import { connectionsCheckMs, headersTimeoutMs, requestTimeoutMs } from '../connections/server-timeouts.ts';
import { Turns } from '../connections/turns.ts';
import { sentStatus } from '../ended-request.ts';
import type { HttpTelemetry } from '../http-telemetry.ts';
import type { Life } from '../life.ts';
import { mountTable, refuseStoreRoutes } from '../mount.ts';
import { requestIdOf } from '../request-id.ts';
import { allowedMethods, methodsOf } from '../route-methods.ts';
import type { AdminAuthDeps } from './admin-auth.ts';
import { requireAdminToken } from './admin-auth.ts';
import { adminRouteList, adminRoutes } from './admin-routes.ts';
import type { OperatorStore } from './operators.ts';
import { operatorsHandlers } from './operators.ts';
import { SharedText } from './shared-text.ts';

/** An e-mail address, a label: more is nothing that an operator sends. */
const bodyLimitBytes = 16 * 1024;
/** For all bodies of operators at once; a client has an eighth, room for a dozen of the largest. */
const bodiesBytes = 2 * 1024 * 1024;
/** An e-mail address has 254 characters, and three times that percent-encoded. */
const maxParamLength = 1024;

/** Probes, scrapers and operators need a few. Each may leave an answer of 300 KB unread. */
const mostConnections = 64;
/** For what waits behind another request on its connection, on all of them. */
const turnsBytes = 2 * 1024 * 1024;
/** Between two renderings of the metrics, which take 10 ms: a tenth of the process, however many scrapers there are. */
const renderingRestMs = 100;

/** What readiness looks at; every part is cheap and in memory. */
export interface ReadyFacts {
  readonly tables: () => Pick<TablesStatus, 'generation' | 'hash' | 'lastReloadOk'>;
  /** False until Postgres was reached once and its schema is new enough; later outages do not unready. */
  readonly storeReady: () => { readonly ready: boolean; readonly reason: string | null };
}

/** What operators may do, over HTTP. */
export interface AdminApi extends AdminAuthDeps {
  readonly clock: Clock;
  readonly httpTelemetry: HttpTelemetry;
  readonly later: LaterTurns;
  /** Null in a profile without a database. */
  readonly store: OperatorStore | null;
}

export interface AdminDeps extends ReadyFacts {
  readonly life: Pick<Life, 'phase'>;
  readonly metrics: () => Promise<string>;
  readonly metricsContentType: string;
  readonly openApi: () => unknown;
  /** Null without an admin token: its paths are unknown ones. */
  readonly api: AdminApi | null;
}

/**
 * Probes, metrics, the API description and the admin API on the second port, which no client-facing Service exposes.
 */
export function createAdminServer(deps: AdminDeps, log: FastifyBaseLogger): FastifyInstance {
  const turns = new Turns(turnsBytes);
  const app: FastifyInstance = fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    bodyLimit: bodyLimitBytes,
    requestTimeout: requestTimeoutMs,
    http: {
      ...nodeHttpOptions,
      IncomingMessage: MeasuredMessage,
      headersTimeout: headersTimeoutMs,
      connectionsCheckingInterval: connectionsCheckMs,
    },
    routerOptions: { maxParamLength },
    clientErrorHandler: answerParserError,
    frameworkErrors: (_error, request, reply) => {
      // No hook has seen this one: its answer may have to wait all the same.
      if (reply.raw.socket === null && !turns.wait(request.raw, reply.raw, () => undefined)) return;
      reply.header('x-request-id', request.id);
      writeError(new NotFoundError('Unknown path.'), request as FastifyRequest, reply as FastifyReply, log);
    },
    requestIdHeader: false,
    genReqId: (request) => requestIdOf(request, randomUUID),
  });
  keepNewest(app.server, mostConnections);
  app.decorateRequest('earlyBody', null);
  answerInTurn(app, turns);
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    done();
  });
  refuseOddRequests(app);
  const methods = methodsOf(adminRouteList);
  handleErrors(app, log, (url) => allowedMethods(app, url, methods));
  serveProbes(app, deps);
  if (deps.api?.store === null) refuseStoreRoutes(app, adminRouteList);
  else if (deps.api !== null) serveAdminApi(app, deps.api, deps.api.store);
  return app;
}

function serveProbes(app: FastifyInstance, deps: AdminDeps): void {
  // Liveness never looks at a dependency: a database blip must not restart every replica.
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/readyz', async (_request, reply) => {
    const store = deps.storeReady();
    const { generation, hash, lastReloadOk } = deps.tables();
    const serving = deps.life.phase === 'serving';
    const ready = store.ready && serving;
    reply.code(ready ? 200 : 503);
    return {
      status: ready ? 'ready' : serving ? 'starting' : 'draining',
      reason: store.reason,
      tables: { generation, hash, last_reload_ok: lastReloadOk },
    };
  });
  serveShared(app, '/metrics', deps.metricsContentType, () => deps.metrics());
  serveShared(app, '/openapi.json', 'application/json; charset=utf-8', () => JSON.stringify(deps.openApi()));
}

/** Nobody who asks for it needs a token: it costs the process little, however often it is asked for. */
function serveShared(
  app: FastifyInstance,
  path: string,
  type: string,
  make: () => string | Promise<string>,
): void {
  const text = new SharedText(make, () => setTimeout(renderingRestMs, undefined, { ref: false }));
  app.get(path, async (request, reply) => {
    reply.header('content-type', type);
    return text.for(request.raw.socket);
  });
}

/** Its bodies have room of their own, so that neither port takes any from the other. */
function serveAdminApi(app: FastifyInstance, api: AdminApi, store: OperatorStore): void {
  const { httpTelemetry } = api;
  const bodies = new BodyBudget(bodiesBytes);
  bodies.onShortage = (shortage) => httpTelemetry.requestShed(shortage);
  acceptOnlyJson(app, bodies, api.later);
  app.register(async (scope) => {
    scope.addHook('onRequest', (request, reply, done) => {
      const route = request.routeOptions.url ?? '';
      reply.raw.on('close', () => {
        releaseBody(request);
        httpTelemetry.adminRequestEnded(request.method, route, sentStatus(reply.raw));
      });
      done();
    });
    requireAdminToken(scope, api);
    mountTable(scope, adminRoutes, operatorsHandlers(store, api));
  });
}
