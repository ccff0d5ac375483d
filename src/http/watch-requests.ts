import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { CallTrace } from '../core/request/chat-call.ts';
import { releaseBody } from './body/body-parser.ts';
import type { UserFault } from './ended-request.ts';
import { endedRequest } from './ended-request.ts';
import type { HttpTelemetry } from './http-telemetry.ts';
import type { Life } from './life.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Where the request's span lies; null when it has no trace. */
    trace: CallTrace | null;
    /** What becomes of it may be its user's doing. */
    userFault: UserFault | null;
  }
}

/** The route's template; null for unknown paths. */
const routeOf = (request: FastifyRequest): string | null =>
  request.is404 ? null : (request.routeOptions.url ?? null);

/**
 * Reports every request from its headers to its last byte, and gives back what it held. The raw response's `close`
 * comes exactly once however the request ends; Fastify's own hooks do not run when the client leaves.
 */
export function watchRequests(
  app: FastifyInstance,
  telemetry: HttpTelemetry,
  life: Life,
  trusted: boolean,
): void {
  app.decorateRequest('trace', null);
  app.decorateRequest('userFault', null);
  app.addHook('onRequest', (request, { raw }, done) => {
    const route = routeOf(request);
    request.trace = telemetry.requestStarted(request.method, route, request.headers, trusted);
    life.requestCount += 1;
    raw.on('close', () => {
      life.requestCount -= 1;
      releaseBody(request);
      telemetry.requestEnded(endedRequest(request, raw, route));
    });
    telemetry.within(request.trace, done);
  });
}
