import { randomInt, randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { answerBudgets } from '../chat/answer-budget.ts';
import { AnswerCache } from '../chat/answer-cache.ts';
import type { AnswerChat } from '../chat/answer-chat.ts';
import { createChat } from '../chat/answer-chat.ts';
import { CandidateBreakers } from '../chat/candidate-breakers.ts';
import type { ChatDeps } from '../chat/chat-deps.ts';
import { DueList } from '../chat/due-list.ts';
import { endpointsOf } from '../chat/endpoints.ts';
import type { KeyCheckDeps } from '../chat/key-check.ts';
import { checkKey } from '../chat/key-check.ts';
import { LaterTurns } from '../chat/later-turn.ts';
import { rememberedForms } from '../chat/remembered-forms.ts';
import { adminAddress, apiAddress } from '../core/net/listen-failure.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import { createAdminServer } from '../http/admin/admin-server.ts';
import { LimitAnswers } from '../http/limits/limit-answers.ts';
import { registerRoutes } from '../http/routes.ts';
import type { ApiFacts } from '../http/schemas/openapi.ts';
import { describedApi } from '../http/schemas/openapi.ts';
import { createServer } from '../http/server.ts';
import { countedBy } from '../limits/counted-log.ts';
import type { LimitGate } from '../limits/limit-gate.ts';
import { packageVersion } from '../package-version.ts';
import { providers } from '../providers/registry.ts';
import type { Settings } from '../settings.ts';
import { stopGraceMs } from '../stop-signals.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { adminApi } from './admin-api.ts';
import { drain } from './drain.ts';
import type { Foundation } from './foundation.ts';
import { openFoundation } from './foundation.ts';
import { limitGateOn } from './limits.ts';
import { listen } from './listen.ts';
import { routesStore } from './store-routes.ts';
import { watchGauges, watchPressure } from './watch-gauges.ts';

export interface RunningGateway {
  readonly url: string;
  readonly adminUrl: string;
  /** Drains and stops. A second call hurries the first. */
  close(): Promise<void>;
}

interface Servers {
  readonly app: FastifyInstance;
  readonly admin: FastifyInstance;
}

/** Starts both listeners. Stores may still be away; /readyz says so. Throws SettingsError on a bad setting. */
export async function startGateway(
  settings: Settings,
  tracing: Tracing | null = null,
): Promise<RunningGateway> {
  const foundation = await openFoundation(settings, tracing);
  const { log, lines, own } = foundation;
  let servers: Servers;
  try {
    servers = await createServers(foundation);
  } catch (error) {
    await foundation.close();
    throw error;
  }
  const stop = stopper(servers, foundation);
  try {
    const adminUrl = await listen(servers.admin, adminAddress(settings), own);
    const url = await listen(servers.app, apiAddress(settings), own);
    log.info({ url, admin_url: adminUrl }, 'listening');
    lines.flush();
    return { url, adminUrl, close: stop };
  } catch (error) {
    // Nobody was told of an address: the second call leaves out the waits for requests.
    void stop();
    await stop();
    throw error;
  }
}

async function createServers(foundation: Foundation): Promise<Servers> {
  const { settings, stores, life, memory, clock, log, metrics, tables, telemetry, sealer, upstream } =
    foundation;
  const { accounts } = stores;
  const breakers = new CandidateBreakers(clock.monotonicMs);
  const answers = answerBudgets(settings.heapBytes, randomInt(2 ** 31));
  const later = new LaterTurns();
  const dues = new DueList(clock.monotonicMs);
  const version = packageVersion();
  const asking = askingOf(foundation);
  const app = await createServer(settings, life, later, log, telemetry, () => tables.current());
  watchGauges(metrics, { settings, tables, stores, life, breakers, dues, upstream, version });
  watchPressure(metrics, () => app.memoryUsage(), memory, settings, life.bodies, answers);
  const store = routesStore(settings, stores, sealer, clock.monotonicMs, {
    metrics: metrics.stores,
    httpTelemetry: telemetry,
  });
  const apiFacts = (): ApiFacts => ({
    chat: tables.current().document.chat,
    hasStore: store !== null,
    registration: settings.registration,
    hasAdminApi: false,
  });
  const limits = limitGateOn(foundation);
  app.addHook('onClose', async () => limits.close());
  await registerRoutes(app, {
    answerChat: chatOn(foundation, asking, { breakers, answers, later, dues }, limits),
    limits: new LimitAnswers(limits, (limit) => metrics.http.limitRefused(limit)),
    checkKey: (key, occasion, signal) => checkKey(key, occasion, asking, signal),
    acceptsWork: (userId) => stores.requestLog.accepting(userId),
    accounts,
    bodies: life.bodies,
    refreshAccount: (keyHash) => accounts.refresh(keyHash),
    tables: () => tables.current(),
    life,
    clock,
    httpTelemetry: telemetry,
    later,
    describe: describedApi(version, apiFacts),
    store,
  });
  const api = adminApi(foundation, later);
  const admin = createAdminServer(
    {
      life,
      tables: () => tables.status(),
      storeReady: stores.storeState,
      metrics: () => metrics.registry.metrics(),
      metricsContentType: metrics.registry.contentType,
      openApi: describedApi(version, () => ({ ...apiFacts(), hasAdminApi: api !== null && store !== null })),
      api,
    },
    log,
  );
  return { app, admin };
}

/** What asks vendors: for answers, and for what they make of a key. */
function askingOf({ settings, sealer, metrics, upstream, clock, log }: Foundation): KeyCheckDeps {
  return {
    transport: upstream,
    providers,
    endpointOf: endpointsOf(providers, settings.vendorBaseUrls),
    openKey: metrics.stores.openKey(sealer.open),
    clock,
    // One line for each attempt, or check, that needed the key; nothing of what the seal said.
    reportUnopenedKey: (keyId, asker) =>
      log.warn({ key_id: keyId, ...idsOf(asker) }, 'a stored provider key cannot be opened'),
  };
}

/** The story of chat requests on this foundation. */
function chatOn(
  foundation: Foundation,
  asking: KeyCheckDeps,
  shared: Pick<ChatDeps, 'breakers' | 'answers' | 'later' | 'dues'>,
  limits: LimitGate,
): AnswerChat {
  const { stores, clock, metrics, telemetry, log } = foundation;
  return createChat({
    ...asking,
    requestForms: rememberedForms(),
    cache: new AnswerCache(metrics.stores.cache(stores.answers), clock.monotonicMs, shared.later, (cause) =>
      log.error({ err: cause }, 'an answer could not be kept'),
    ),
    requestLog: countedBy(limits, stores.requestLog),
    ...shared,
    telemetry,
    newId: randomUUID,
    // As the errors that reach the client as a 500.
    reportBug: (cause, call) => log.error({ err: cause, ...idsOf(call) }, 'unhandled error behind an answer'),
  });
}

function idsOf({ requestId, userId }: Pick<ChatCall, 'requestId' | 'userId'>): {
  request_id: string;
  user_id: string;
} {
  return { request_id: requestId, user_id: userId };
}

/** Of the time that a stop has, for what comes behind the last line of stdout. */
const endMs = 1_000;

/** Drains, then closes all of it. A second call hurries the first. */
function stopper({ app, admin }: Servers, foundation: Foundation): () => Promise<void> {
  const { life, settings, log, lines } = foundation;
  const hurry = new AbortController();
  let stopped: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    log.info({ active: life.activeCount }, 'draining');
    const { drainDelayMs: delayMs, drainMs } = settings;
    // Rows are printed for as long as the process is there: see `endAfter`.
    lines.endBy(performance.now() + delayMs + drainMs + stopGraceMs - endMs);
    const cut = await drain(app, life, { delayMs, drainMs }, hurry.signal);
    // By a line, since no scrape comes between the last streams and the end of the process.
    if (cut > 0) log.warn({ active: cut }, 'the drain was too short: chat requests were cut');
    // Metrics and probes are answered to the last.
    await foundation.close();
    await admin.close();
  };
  return () => {
    if (stopped !== null) hurry.abort();
    stopped ??= stop();
    return stopped;
  };
}
