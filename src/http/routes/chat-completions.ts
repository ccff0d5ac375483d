import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ChatIo } from '../../chat/answer-chat.ts';
import { answerChat } from '../../chat/answer-chat.ts';
import type { Account } from '../../chat/ports.ts';
import type { ChatCall } from '../../core/chat-call.ts';
import { draining, InvalidRequestError, retrySoon, ServiceUnavailableError } from '../../core/errors.ts';
import { parseMode } from '../../core/mode.ts';
import type { RoutingTables } from '../../core/tables.ts';
import { smallBodyBytes } from '../body-budget.ts';
import { parseChatBody } from '../chat-body.ts';
import { readGatewayHeaders } from '../gateway-headers.ts';
import type { HttpTelemetry } from '../http-telemetry.ts';
import { legacyHeaders, markLegacy } from '../legacy.ts';
import type { Life } from '../life.ts';
import { ReplyClient } from '../sse-reply.ts';

export interface ChatRouteIo extends Omit<ChatIo, 'reportBug' | 'reportUnopenedKey'> {
  readonly tables: () => RoutingTables;
  readonly life: Life;
  readonly httpTelemetry: Pick<HttpTelemetry, 'legacyUsed'>;
  readonly refreshAccount: (serviceKeyHash: string) => Promise<Account | null>;
}

function refuseNewWork(io: ChatRouteIo): void {
  if (io.life.closing) throw draining();
  if (!io.requestLog.accepting()) {
    throw new ServiceUnavailableError('Request logs cannot be kept at the moment.', {
      code: 'log_full',
      headers: retrySoon,
    });
  }
}

/** Body, then headers (docs/decisions): the first error wins. */
function readCall(request: FastifyRequest, reply: FastifyReply, io: ChatRouteIo): ChatCall {
  const tables = io.tables();
  const legacy = legacyHeaders(tables, io.clock);
  const body = parseChatBody(request.body, tables);
  const parsed = parseMode(body.model, legacy === null || legacy.ended ? null : legacy.name);
  if (parsed === null) {
    throw new InvalidRequestError(
      'model must be gw/cheap, gw/balanced or gw/premium; pin a model with X-Gateway-Override-Model.',
      'model',
      'unknown_mode',
    );
  }
  const { options, usedLegacy } = readGatewayHeaders(request.raw, legacy);
  request.toUserServer = options.override?.provider === 'self_hosted';
  if (parsed.legacy || usedLegacy) markLegacy(reply, tables);
  if (parsed.legacy) io.httpTelemetry.legacyUsed('mode');
  if (usedLegacy) io.httpTelemetry.legacyUsed('header');
  return {
    userId: request.account.userId,
    requestId: request.id,
    request: body,
    options,
    mode: parsed.mode,
    tier: parsed.tier,
    tables,
    enteredAtMs: request.enteredAtMs,
    trace: request.trace,
  };
}

/** As the errors that reach the client as a 500. */
function bugReporter(app: FastifyInstance): ChatIo['reportBug'] {
  return (cause, { requestId, userId }) =>
    app.log.error({ err: cause, request_id: requestId, user_id: userId }, 'unhandled error behind an answer');
}

/** One line for each attempt that needed the key; nothing of what the seal said. */
function unopenedKeyReporter(app: FastifyInstance): ChatIo['reportUnopenedKey'] {
  return (keyId, { requestId }) =>
    app.log.warn({ key_id: keyId, request_id: requestId }, 'a stored provider key cannot be opened');
}

/** `POST /v1/chat/completions` (SPEC 4.5). */
export function chatCompletionsRoute(app: FastifyInstance, io: ChatRouteIo): void {
  const story = { ...io, reportBug: bugReporter(app), reportUnopenedKey: unopenedKeyReporter(app) };
  const bodyLimit = app.initialConfig.bodyLimit ?? smallBodyBytes;
  app.post('/v1/chat/completions', { bodyLimit }, async (request, reply) => {
    refuseNewWork(io);
    const call = readCall(request, reply, io);
    const client = new ReplyClient(reply, io.life, call.userId);
    io.life.unsettled += 1;
    const holder = { keys: request.account.keys };
    request.account = { ...request.account, keys: [] };
    let json: string | null;
    try {
      json = await answerChat(call, holder, client, story, () => io.refreshAccount(request.serviceKeyHash));
    } finally {
      io.life.unsettled -= 1;
    }
    if (json === null) return reply;
    client.keeps(json.length);
    return reply.header('content-type', 'application/json; charset=utf-8').send(json);
  });
}
