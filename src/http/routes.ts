import type { FastifyInstance } from 'fastify';
import type { AuthIo } from './auth.ts';
import { requireServiceKey } from './auth.ts';
import type { HttpTelemetry } from './http-telemetry.ts';
import { openApiDocument } from './openapi.ts';
import type { ChatRouteIo } from './routes/chat-completions.ts';
import { chatCompletionsRoute } from './routes/chat-completions.ts';
import type { KeysIo } from './routes/keys.ts';
import { keysRoutes } from './routes/keys.ts';
import type { LogsIo } from './routes/logs.ts';
import { logsRoutes } from './routes/logs.ts';
import { modelsRoutes } from './routes/models.ts';
import { notInProfileRoutes } from './routes/not-in-profile.ts';
import type { UsersIo } from './routes/users.ts';
import { usersRoute } from './routes/users.ts';

/** The routes that need Postgres. */
export interface StoreRoutesIo
  extends Omit<KeysIo, 'tables' | 'httpTelemetry'>,
    LogsIo,
    Omit<UsersIo, 'httpTelemetry'> {}

export interface RoutesIo extends AuthIo, ChatRouteIo {
  readonly httpTelemetry: HttpTelemetry;
  /** Null in a profile without a database. */
  readonly store: StoreRoutesIo | null;
}

/** All routes of the API port. Only registration lies outside the authenticated scope. */
export async function registerRoutes(app: FastifyInstance, io: RoutesIo): Promise<void> {
  const { store, httpTelemetry } = io;
  if (store === null) notInProfileRoutes(app);
  else usersRoute(app, { ...store, httpTelemetry });
  await app.register(async (scope) => {
    requireServiceKey(scope, io);
    chatCompletionsRoute(scope, io);
    modelsRoutes(scope, io);
    if (store !== null) {
      keysRoutes(scope, { ...store, httpTelemetry, tables: io.tables });
      logsRoutes(scope, store);
    }
    scope.get('/openapi.json', async () => openApiDocument());
  });
}
