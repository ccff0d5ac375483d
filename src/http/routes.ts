import type { FastifyInstance } from 'fastify';
import type { AuthIo } from './auth.ts';
import { requireServiceKey } from './auth.ts';
import { openApiDocument } from './openapi.ts';
import type { ChatRouteIo } from './routes/chat-completions.ts';
import { chatCompletionsRoute } from './routes/chat-completions.ts';
import type { KeysIo } from './routes/keys.ts';
import { keysRoutes } from './routes/keys.ts';
import type { LogsIo } from './routes/logs.ts';
import { logsRoutes } from './routes/logs.ts';
import { modelsRoutes } from './routes/models.ts';
import type { UsersIo } from './routes/users.ts';
import { usersRoute } from './routes/users.ts';

export interface RoutesIo extends AuthIo, ChatRouteIo, KeysIo, LogsIo, UsersIo {}

/** All routes of the API port. Only registration lies outside the authenticated scope. */
export async function registerRoutes(app: FastifyInstance, io: RoutesIo): Promise<void> {
  usersRoute(app, io);
  await app.register(async (scope) => {
    requireServiceKey(scope, io);
    keysRoutes(scope, io);
    chatCompletionsRoute(scope, io);
    logsRoutes(scope, io);
    modelsRoutes(scope, io);
    scope.get('/openapi.json', async () => openApiDocument());
  });
}
