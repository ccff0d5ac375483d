import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { AnswerChat } from '../../chat/answer-chat.ts';
import type { Accounts, Clock } from '../../chat/ports.ts';
import type { GatewayError } from '../../core/errors.ts';
import {
  draining,
  InvalidRequestError,
  overloaded,
  retrySoon,
  ServiceUnavailableError,
} from '../../core/errors.ts';
import { limitsOf } from '../../core/limits/user-limits.ts';
import { isUserServer } from '../../core/provider-name.ts';
import type { ChatCall, ChatOptions } from '../../core/request/chat-call.ts';
import type { ResidencyBound } from '../../core/request/residency.ts';
import { residencyBinder, strictestResidency } from '../../core/request/residency.ts';
import { modes, parseMode } from '../../core/tables/mode.ts';
import type { RoutingTables } from '../../core/tables/tables.ts';
import type { Admission } from '../../limits/limit-gate.ts';
import type { KeyFinder } from '../access/keys-of.ts';
import { freshAccount, keysOf } from '../access/keys-of.ts';
import { ReplyClient } from '../answers/reply-client.ts';
import { parseChatBody } from '../body/chat-body.ts';
import { readGatewayHeaders, usesLegacyHeader } from '../gateway-headers.ts';
import type { HttpTelemetry } from '../http-telemetry.ts';
import { legacyHeaders, markLegacy } from '../legacy.ts';
import type { Life } from '../life.ts';
import type { LimitAnswers } from '../limits/limit-answers.ts';
import type { Handlers } from '../mount.ts';

export interface ChatRouteDeps {
  readonly answerChat: AnswerChat;
  /** False while this user's log rows cannot be kept. */
  readonly acceptsWork: (userId: string) => boolean;
  readonly life: Life;
  readonly limits: Pick<LimitAnswers, 'admit' | 'refuseEarly'>;
  readonly clock: Pick<Clock, 'wallMs'>;
  /** Those at hand. */
  readonly tables: () => RoutingTables;
  readonly httpTelemetry: Pick<HttpTelemetry, 'legacyUsed' | 'requestShed'>;
  readonly accounts: KeyFinder;
  readonly refreshAccount: Accounts['refresh'];
}

/** What keeps new chat requests of this user out; null: nothing. */
function refusalOfNewWork(
  { account }: FastifyRequest,
  { life, acceptsWork }: ChatRouteDeps,
): GatewayError | null {
  if (life.phase === 'closing') return draining();
  if (acceptsWork(account.userId)) return null;
  return new ServiceUnavailableError('Request logs cannot be kept at the moment.', {
    code: 'log_full',
    headers: retrySoon,
  });
}

/** Refuses them before their bodies are read: what nobody will work on is not to be sent and held. */
export function refuseNewWork(deps: ChatRouteDeps): onRequestHookHandler {
  return (request, _reply, done) => done(refusalOfNewWork(request, deps) ?? undefined);
}

/**
 * By the request's own tables, and by those at hand: a body may take its time, and what it says once its deployment is
 * bound must not leave. It can only become stricter.
 */
const deploymentBound = (own: RoutingTables, { tables }: ChatRouteDeps): ResidencyBound =>
  own.residency ?? tables().residency;

/** Before anything is refused: who still uses the former surface is told so whatever the answer. */
function markUse(
  surface: 'mode' | 'header',
  request: FastifyRequest,
  reply: FastifyReply,
  deps: ChatRouteDeps,
): void {
  markLegacy(reply, request.tables);
  deps.httpTelemetry.legacyUsed(surface);
}

/** In words: `a, b or c`. */
const oneOfModes = modes.join(', ').replace(/, (?=[^,]*$)/, ' or ');

/** Body, then headers (docs/decisions): the first error wins. */
function readCall(request: FastifyRequest, reply: FastifyReply, deps: ChatRouteDeps): ChatCall {
  const { tables } = request;
  const legacy = legacyHeaders(tables, deps.clock);
  if (usesLegacyHeader(request.raw, legacy)) markUse('header', request, reply, deps);
  const body = parseChatBody(request.body, tables, request.jsonAllowance);
  const parsed = parseMode(body.model, legacy === null || legacy.ended ? null : legacy.name);
  if (parsed === null) {
    throw new InvalidRequestError(
      `model must be ${oneOfModes}; pin a model with X-Gateway-Override-Model.`,
      'model',
      'unknown_mode',
    );
  }
  if (parsed.legacy) markUse('mode', request, reply, deps);
  const asked = readGatewayHeaders(request.raw, legacy);
  // The one place where it is settled where a call may go: plan, cache key, attempt and socket go by it.
  const demands = [asked.residency, request.account.residency, deploymentBound(tables, deps)] as const;
  const residency = strictestResidency(...demands);
  const options = residency === asked.residency ? asked : { ...asked, residency };
  if (options.override !== null && isUserServer(options.override.provider)) request.userFault = 'user_server';
  return {
    userId: request.account.userId,
    requestId: request.id,
    request: body,
    bodyText: takeText(request, options),
    options,
    residencyBoundBy: residencyBinder(...demands),
    mode: parsed.mode,
    tier: parsed.tier,
    tables,
    enteredAtMs: request.enteredAtMs,
    trace: request.trace,
  };
}

/** The request lets go of it: a stream must not keep what only the cache asks for. */
function takeText(request: FastifyRequest, { cacheTtlSeconds }: ChatOptions): string | null {
  const { bodyText } = request;
  request.bodyText = null;
  return cacheTtlSeconds === null ? null : bodyText;
}

const isStream = ({ request }: ChatCall): boolean => request.stream === true;

/** One user cannot take the places of all others. */
function placeFor({ userId }: ChatCall, { life, httpTelemetry }: ChatRouteDeps): number {
  const place = life.enter(userId);
  if (place !== null) return place;
  httpTelemetry.requestShed('user_share');
  throw overloaded('user_share');
}

/** `POST /v1/chat/completions` (SPEC 4.5). */
export function chatHandlers(deps: ChatRouteDeps): Handlers<'chat'> {
  const chat = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    // Again: a body may have taken its time.
    const refusal = refusalOfNewWork(request, deps);
    if (refusal !== null) throw refusal;
    const call = readCall(request, reply, deps);
    const place = placeFor(call, deps);
    deps.life.unsettled += 1;
    // Its client may leave while another one waits for the answer.
    request.bodyHold?.keep();
    let admitted: Admission | null = null;
    try {
      const limits = limitsOf(call.tables.userLimits, request.account.limits);
      // Who has no limits pays for them with this branch.
      if (limits !== null) admitted = await deps.limits.admit(limits, request, reply, isStream(call));
      const found = keysOf(request, deps.accounts);
      const keys = found instanceof Promise ? await found : found;
      const client = new ReplyClient(reply, deps.life, call.userId);
      const refresh = () => freshAccount(request, deps.refreshAccount);
      const answering = deps.answerChat(call, { keys }, client, refresh);
      if (isStream(call)) client.prepare();
      const answer = await answering;
      if (answer !== null) client.answer(answer);
    } finally {
      deps.life.unsettled -= 1;
      request.bodyHold?.letGo();
      admitted?.end();
      deps.life.leave(place);
    }
  };
  return { chat };
}
