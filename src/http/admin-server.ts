import { randomUUID } from 'node:crypto';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { fastify, LogController } from 'fastify';
import type { TablesStatus } from '../adapters/tables/last-good-tables.ts';
import { handleErrors } from './error-handler.ts';
import type { Life } from './life.ts';
import { nodeHttpOptions, refuseOddRequests } from './odd-requests.ts';
import { answerParserError } from './parser-errors.ts';
import { requestIdOf } from './request-id.ts';

/** What readiness looks at; every part is cheap and in memory. */
export interface ReadyFacts {
  readonly tables: () => TablesStatus;
  /** False until Postgres was reached once and its schema is new enough; later outages do not unready. */
  readonly storeReady: () => { readonly ready: boolean; readonly reason: string | null };
}

export interface AdminDeps extends ReadyFacts {
  readonly life: Life;
  readonly metrics: () => Promise<string>;
  readonly metricsContentType: string;
  readonly openApi: () => unknown;
}

/** Probes, metrics and the API description on the second port, which no client-facing Service exposes. */
export function createAdminServer(deps: AdminDeps, log: FastifyBaseLogger): FastifyInstance {
  const app: FastifyInstance = fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    http: nodeHttpOptions,
    clientErrorHandler: answerParserError,
    requestIdHeader: false,
    genReqId: (request) => requestIdOf(request, randomUUID),
  });
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    done();
  });
  refuseOddRequests(app);
  handleErrors(app, () => null);
  // Liveness never looks at a dependency: a database blip must not restart every replica.
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/readyz', async (_request, reply) => {
    const store = deps.storeReady();
    const { generation, hash, lastReloadOk } = deps.tables();
    const ready = store.ready && !deps.life.draining;
    reply.code(ready ? 200 : 503);
    return {
      status: ready ? 'ready' : deps.life.draining ? 'draining' : 'starting',
      reason: store.reason,
      tables: { generation, hash, last_reload_ok: lastReloadOk },
    };
  });
  app.get('/metrics', async (_request, reply) => {
    reply.header('content-type', deps.metricsContentType);
    return deps.metrics();
  });
  app.get('/openapi.json', async () => deps.openApi());
  return app;
}
