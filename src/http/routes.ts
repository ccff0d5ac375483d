import type { FastifyInstance } from 'fastify';
import type { LaterTurns } from '../chat/later-turn.ts';
import type { Accounts, Clock } from '../chat/ports.ts';
import type { AuthDeps } from './access/auth.ts';
import { requireServiceKey } from './access/auth.ts';
import { writtenInTurns } from './answers/long-answer.ts';
import type { HttpTelemetry } from './http-telemetry.ts';
import type { Handlers } from './mount.ts';
import { mountRoutes, refuseStoreRoutes } from './mount.ts';
import type { RouteNameWith } from './route-table.ts';
import type { ChatRouteDeps } from './routes/chat-completions.ts';
import { chatHandlers, refuseNewWork } from './routes/chat-completions.ts';
import type { LogDetailStore } from './routes/explained-log.ts';
import { explainedLog } from './routes/explained-log.ts';
import type { KeyCheckRouteDeps, KeyCheckStore } from './routes/key-check.ts';
import { keyCheckHandlers } from './routes/key-check.ts';
import type { KeyStore } from './routes/keys.ts';
import { keysHandlers } from './routes/keys.ts';
import type { LogStore } from './routes/logs.ts';
import { logPage } from './routes/logs.ts';
import { modelsHandlers } from './routes/models.ts';
import type { ServiceKeyStore } from './routes/service-keys.ts';
import { serviceKeysHandlers } from './routes/service-keys.ts';
import type { StatsStore } from './routes/stats.ts';
import { stats } from './routes/stats.ts';
import type { MayRegister, UserStore } from './routes/users.ts';
import { registrationHook, usersHandlers } from './routes/users.ts';

/** What the routes that need Postgres ask of it. */
export interface RoutesStore
  extends UserStore,
    KeyStore,
    ServiceKeyStore,
    KeyCheckStore,
    LogStore,
    LogDetailStore,
    StatsStore {
  readonly mayRegister: MayRegister;
}

/** What the routes need of the rest, given once. */
export interface RoutesDeps extends AuthDeps, ChatRouteDeps, KeyCheckRouteDeps {
  readonly accounts: Accounts;
  readonly clock: Clock;
  readonly httpTelemetry: HttpTelemetry;
  /** For answers that are long to write. */
  readonly later: LaterTurns;
  /** The API description. */
  readonly describe: () => Readonly<Record<string, unknown>>;
  /** Null in a profile without a database. */
  readonly store: RoutesStore | null;
}

type StoreRouteName = Exclude<RouteNameWith<'needsStore', true>, RouteNameWith<'auth', 'registration'>>;

function storeHandlers(store: RoutesStore, deps: RoutesDeps): Handlers<StoreRouteName> {
  return {
    ...keysHandlers(store, deps),
    ...serviceKeysHandlers(store, deps),
    readLogs: ({ query, request, reply }) =>
      logPage(store, request.account.userId, query, (page) => writtenInTurns(page, reply, deps.later)),
    ...keyCheckHandlers(store, deps),
    explainLog: ({ params, request }) => explainedLog(store, request.account.userId, params.log_id),
    readStats: ({ query, request, reply }) =>
      stats(store, request.account.userId, query, (sums) => writtenInTurns(sums, reply, deps.later)),
  };
}

/** All routes of the API port. Only registration lies outside the authenticated scope. */
export async function registerRoutes(app: FastifyInstance, deps: RoutesDeps): Promise<void> {
  const { store, httpTelemetry } = deps;
  if (store === null) refuseStoreRoutes(app);
  else {
    const register: Handlers<RouteNameWith<'auth', 'registration'>> = usersHandlers(store, httpTelemetry);
    mountRoutes(app, register, [registrationHook(store.mayRegister)]);
  }
  await app.register(async (scope) => {
    requireServiceKey(scope, deps);
    mountRoutes(scope, chatHandlers(deps), [refuseNewWork(deps), deps.limits.refuseEarly]);
    const storeless: Handlers<Exclude<RouteNameWith<'needsStore', false>, 'chat'>> = {
      ...modelsHandlers(deps),
      describe: deps.describe,
    };
    mountRoutes(scope, storeless);
    if (store !== null) mountRoutes(scope, storeHandlers(store, deps));
  });
}
