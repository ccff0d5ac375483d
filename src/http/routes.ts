import type { FastifyInstance } from 'fastify';
import type { Clock } from '../chat/ports.ts';
import type { AuthDeps } from './auth.ts';
import { requireServiceKey } from './auth.ts';
import type { HttpTelemetry } from './http-telemetry.ts';
import { openApiDocument } from './openapi.ts';
import type { ChatRouteDeps } from './routes/chat-completions.ts';
import { chatCompletionsRoute } from './routes/chat-completions.ts';
import type { KeysDeps } from './routes/keys.ts';
import { keysRoutes } from './routes/keys.ts';
import type { LogsDeps } from './routes/logs.ts';
import { logsRoute } from './routes/logs.ts';
import { modelsRoutes } from './routes/models.ts';
import { notInProfileRoutes } from './routes/not-in-profile.ts';
import type { StatsDeps } from './routes/stats.ts';
import { statsRoute } from './routes/stats.ts';
import type { UsersDeps } from './routes/users.ts';
import { usersRoute } from './routes/users.ts';

/** The routes that need Postgres. */
export interface StoreRoutesDeps
  extends Omit<KeysDeps, 'tables' | 'httpTelemetry'>,
    LogsDeps,
    StatsDeps,
    Omit<UsersDeps, 'httpTelemetry'> {}

/** What the routes need of the rest, given once. */
export interface RoutesDeps extends AuthDeps, ChatRouteDeps {
  readonly clock: Clock;
  readonly httpTelemetry: HttpTelemetry;
  /** Null in a profile without a database. */
  readonly store: StoreRoutesDeps | null;
}

/** All routes of the API port. Only registration lies outside the authenticated scope. */
export async function registerRoutes(app: FastifyInstance, deps: RoutesDeps): Promise<void> {
  const { store, httpTelemetry } = deps;
  if (store === null) notInProfileRoutes(app);
  else usersRoute(app, { ...store, httpTelemetry });
  await app.register(async (scope) => {
    requireServiceKey(scope, deps);
    chatCompletionsRoute(scope, deps);
    modelsRoutes(scope, deps);
    if (store !== null) {
      keysRoutes(scope, { ...store, httpTelemetry, tables: deps.tables });
      logsRoute(scope, store);
      statsRoute(scope, store);
    }
    scope.get('/openapi.json', async () => openApiDocument());
  });
}
