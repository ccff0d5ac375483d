import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Fastify from 'fastify';
import { ClientGoneError, createChat } from '../../src/chat/answer-chat.ts';
import { CandidateBreakers } from '../../src/chat/candidate-breakers.ts';
import { VerbatimError } from '../../src/chat/verbatim-error.ts';
import type { HeldKey } from '../../src/core/candidate.ts';
import { errorBody } from '../../src/core/error-body.ts';
import type { ProviderName } from '../../src/core/provider-name.ts';
import { providerNames } from '../../src/core/provider-name.ts';
import type { ResidencyBinder } from '../../src/core/request/residency.ts';
import type { SettledRequest } from '../../src/core/settled-request.ts';
import type { RoutingTables } from '../../src/core/tables/tables.ts';
import { toGatewayError } from '../../src/http/answers/error-handler.ts';
import { BodyBudget } from '../../src/http/body/body-budget.ts';
import { jsonAllowanceFor } from '../../src/http/body/costly-json.ts';
import { Life } from '../../src/http/life.ts';
import { mountRoutes } from '../../src/http/mount.ts';
import { chatHandlers } from '../../src/http/routes/chat-completions.ts';
import { heldKey, testTables, World } from '../chat/story.ts';
import type { TablesInput } from '../harness/gateway/tables.ts';
import { tables as tablesInput } from '../harness/gateway/tables.ts';
import { unreadAnswers } from '../harness/gateway/unread-answers.ts';
import type { Random } from '../harness/measure/random.ts';
import { callerOf } from '../http/caller.ts';
import type { Region } from './servers.ts';
import { nextFault, regions, Servers } from './servers.ts';

export const userIds = ['user-0', 'user-1', 'user-2', 'user-3'] as const;
export type UserId = (typeof userIds)[number];

/** The name of the service before the rename, where the tables have one. */
export const legacyName = 'oldgw';
const sunsetMs = Date.parse('2026-07-23T00:00:00Z');
const dayMs = 86_400_000;
/** Like users do: with other cases and spaces. */
const spelled = [
  (region: string) => region,
  (region: string) => region.toUpperCase(),
  (region: string) => ` ${region} `,
];
const ownServers = Object.keys(regions).flatMap((region, index) =>
  ['a', 'b'].map((name) => ({ origin: `https://${name}${index}.example.com`, region: region as Region })),
);
const mostOwnKeys = 4;

/** What the server's own writer does, without its care for bodies that are still coming: none is here. */
function answerError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
  if (thrown instanceof ClientGoneError) {
    reply.hijack();
    reply.raw.destroy();
  } else if (thrown instanceof VerbatimError) {
    reply.code(thrown.status).send(thrown.body);
  } else {
    const error = toGatewayError(thrown);
    reply.code(error.status).send(errorBody(error, request.id));
  }
}

/** Keys, tables, servers and time of the model: everything but the requests. The chat route on them is the real one. */
export class ResidencyWorld {
  readonly servers = new Servers(ownServers);
  readonly app: FastifyInstance = Fastify({ requestIdHeader: 'x-request-id' });
  readonly #random: Random;
  readonly #world = new World();
  readonly #keys = new Map<UserId, HeldKey[]>(userIds.map((user) => [user, []]));
  /** What a replica that has not heard of the last change still believes. */
  readonly #stale = new Map<UserId, readonly HeldKey[]>();
  /** Whom an operator has bound to India. */
  readonly #bound = new Set<UserId>();
  #tables: RoutingTables = testTables();
  #nowMs = sunsetMs - dayMs;
  #created = 0;

  constructor(random: Random) {
    this.#random = random;
    const deps = {
      ...this.#world.deps,
      transport: this.servers,
      breakers: new CandidateBreakers(() => this.#nowMs),
      clock: { ...this.#world.deps.clock, wallMs: () => this.#nowMs },
    };
    this.app.setErrorHandler(answerError);
    this.app.decorateRequest('account');
    this.app.decorateRequest('serviceKeyHash', '');
    this.app.decorateRequest('trace', null);
    this.app.decorateRequest('enteredAtMs', 0);
    this.app.decorateRequest('tables');
    this.app.decorateRequest('jsonAllowance');
    this.app.decorateRequest('bodyText', null);
    this.app.addHook('onRequest', (request, _reply, done) => {
      const userId = request.headers['x-user'] as UserId;
      request.tables = this.#tables;
      request.serviceKeyHash = userId;
      request.jsonAllowance = jsonAllowanceFor(Buffer.alloc(0));
      const residency = this.#bound.has(userId) ? 'india' : null;
      request.account = { ...callerOf(userId, this.#believed(userId)), residency };
      done();
    });
    this.app.addHook('preHandler', (request, _reply, done) => {
      request.bodyText = JSON.stringify(request.body);
      done();
    });
    const handlers = chatHandlers({
      answerChat: createChat(deps),
      acceptsWork: () => true,
      limits: { admit: async () => null, refuseEarly: (_request, _reply, done) => done() },
      clock: deps.clock,
      tables: () => this.#tables,
      life: new Life(new BodyBudget(24 * 1024 * 1024), unreadAnswers()),
      httpTelemetry: { legacyUsed: () => {}, requestShed: () => {} },
      accounts: { find: (hash) => callerOf(hash, this.#believed(hash as UserId)) },
      refreshAccount: async (hash) => {
        const residency = this.#bound.has(hash as UserId) ? 'india' : null;
        return { ...callerOf(hash, this.#keysOf(hash as UserId)), residency };
      },
    });
    mountRoutes(this.app, handlers);
  }

  get hasLegacy(): boolean {
    return this.#tables.legacy !== null;
  }

  get afterSunset(): boolean {
    return this.#nowMs >= sunsetMs;
  }

  /** By whose word a request of this user stays in India, beside its own; null: it is free. */
  binderOf(user: UserId): Exclude<ResidencyBinder, 'request'> | null {
    if (this.#tables.document.residency.policy === 'india') return 'deployment';
    return this.#bound.has(user) ? 'user' : null;
  }

  /** An operator binds a user, or lets it go. */
  decide(): void {
    const user = this.#random.pick(userIds);
    if (!this.#bound.delete(user) && this.#random.chance(0.5)) this.#bound.add(user);
  }

  /** What was settled since this was asked the last time, by the request's id. */
  settled(): ReadonlyMap<string, SettledRequest> {
    return new Map(this.#world.rows.splice(0).map((row) => [row.requestId, row]));
  }

  addKey(): void {
    const user = this.#random.pick(userIds);
    const provider: ProviderName = this.#random.pick([...providerNames, 'self_hosted', 'self_hosted']);
    const held = this.#keysOf(user).filter((key) => key.provider === provider).length;
    if (held >= (provider === 'self_hosted' ? mostOwnKeys : 1)) return;
    this.#created += 1;
    const own = this.#random.pick(ownServers);
    const place =
      provider === 'self_hosted'
        ? {
            baseUrl: `${own.origin}/v1`,
            declaredRegion: this.#random.pick(spelled)(own.region),
            label: this.#random.pick([null, 'mine', 'box']),
          }
        : {};
    const key = heldKey(provider, {
      id: `key-${this.#created}`,
      userId: user,
      createdAtMs: this.#created,
      ...place,
    });
    this.#change(user, [...this.#keysOf(user), key]);
  }

  deleteKey(): void {
    const user = this.#random.pick(userIds);
    const gone = this.#random.pick(this.#keysOf(user));
    this.#change(
      user,
      this.#keysOf(user).filter((key) => key !== gone),
    );
  }

  /** The change arrives everywhere. */
  hear(): void {
    this.#stale.clear();
  }

  /** An operator's tables: any order of candidates, any true list of regions, abilities, with and without a past. */
  reload(): void {
    const random = this.#random;
    const shipped = tablesInput();
    const india = Object.keys(regions).filter((region) => regions[region as Region] === 'india');
    const policy = random.chance(0.15) ? 'india' : 'none';
    const known = random.pick([undefined, [], ['ap-south-1'], ['PRIVATE-mumbai', 'India'], india]);
    const overrides: Partial<TablesInput> = {
      tiers: {
        cheap: random.shuffled(shipped.tiers.cheap),
        balanced: random.shuffled(shipped.tiers.balanced),
        premium: random.shuffled(shipped.tiers.premium),
      },
      residency: { policy, ...(known === undefined ? {} : { india_regions: known }) },
      ...(random.chance(0.7) ? { legacy: { name: legacyName } } : {}),
      cooldown: random.chance(0.5) ? { failures: 1000, users: 1000 } : { failures: 2, users: 2 },
      models: [
        ...(shipped.models ?? []),
        { provider: 'sarvam', match: '', api_version: 'v2', tools: random.chance(0.5) },
      ],
    };
    this.#tables = testTables(overrides);
  }

  outage(): void {
    this.#random.pick(this.servers.all()).fault = nextFault(this.#random);
  }

  /** Pauses of failing candidates end; the day of the sunset comes and, for the model, goes back again. */
  timePasses(): void {
    const random = this.#random;
    this.#nowMs += random.chance(0.8) ? random.below(120_000) : 0;
    if (random.chance(0.1))
      this.#nowMs = random.chance(0.5) ? sunsetMs - dayMs : sunsetMs + random.below(dayMs);
  }

  forgetAnswers(): void {
    this.#world.store.entries.clear();
  }

  /** Keys that a user may name in an override. */
  selectors(user: UserId): string[] {
    return this.#keysOf(user).flatMap(({ id, label }) => (label === null ? [id] : [id, label]));
  }

  /** The ledgers of 100,000 requests are nobody's business here. */
  sweep(): void {
    const { telemetry, rows, opened } = this.#world;
    for (const list of [telemetry.attempts, telemetry.rows, telemetry.fallbacks, telemetry.skipped])
      list.length = 0;
    for (const list of [telemetry.cache, telemetry.streamEnds, telemetry.stalls, rows, opened])
      list.length = 0;
  }

  get bugs(): readonly unknown[] {
    return this.#world.bugs;
  }

  #keysOf(user: UserId): readonly HeldKey[] {
    return this.#keys.get(user) ?? [];
  }

  #believed(user: UserId): readonly HeldKey[] {
    return this.#stale.get(user) ?? this.#keysOf(user);
  }

  #change(user: UserId, keys: HeldKey[]): void {
    if (this.#random.chance(0.5) && !this.#stale.has(user)) this.#stale.set(user, this.#keysOf(user));
    this.#keys.set(user, keys);
  }
}
