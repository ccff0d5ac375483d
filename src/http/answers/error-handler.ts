import { STATUS_CODES } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ClientGoneError } from '../../chat/answer-chat.ts';
import { VerbatimError } from '../../chat/verbatim-error.ts';
import { errorBody } from '../../core/error-body.ts';
import {
  ApiError,
  GatewayError,
  HttpRequestError,
  NotFoundError,
  retrySoon,
  ServiceUnavailableError,
} from '../../core/errors.ts';
import { KeysRejectedError } from '../../core/final-error.ts';
import type { CallTrace } from '../../core/request/chat-call.ts';
import { StoreAway } from '../../core/store-away.ts';
import { answerEarly, isBodyComing } from './linger.ts';

/** Fastify's own errors, by code → ours. */
function fromFramework(error: Error & { code?: string; statusCode?: number }): GatewayError | null {
  switch (error.code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new HttpRequestError(415, 'Content-Type must be application/json.', 'unsupported_media_type');
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_ASYNC_CONSTRAINT':
      return new NotFoundError('Unknown path.');
    case 'ECONNRESET':
    case 'ECONNABORTED':
      return new HttpRequestError(408, 'The request body did not arrive whole.', 'request_aborted');
    default:
      return fromStatus(error.code ?? '', error.statusCode ?? 500);
  }
}

/** What else Fastify blames on the client; a later version may know more than this one. */
function fromStatus(code: string, status: number): GatewayError | null {
  if (!code.startsWith('FST_') || status < 400 || status > 499) return null;
  return new HttpRequestError(status, `${STATUS_CODES[status] ?? 'Refused'}.`, 'refused');
}

/** Any thrown value → an error with a place in SPEC 7. Unknown ones are 500 with a fixed text. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  if (thrown instanceof StoreAway) {
    const code = 'database_unavailable';
    return new ServiceUnavailableError(thrown.message, { code, headers: retrySoon, cause: thrown });
  }
  return (thrown instanceof Error ? fromFramework(thrown) : null) ?? new ApiError(thrown);
}

/** The names of the access line. */
function traceFields(trace: CallTrace | null | undefined): Readonly<Record<string, string>> {
  if (trace == null) return {};
  return { trace_id: trace.traceId, span_id: trace.spanId, trace_flags: trace.sampled ? '01' : '00' };
}

/** The one place that replies with errors; parser-errors.ts says them to sockets whose request never was one. */
export function writeError(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  log: FastifyBaseLogger,
): void {
  if (thrown instanceof ClientGoneError) {
    reply.hijack();
    reply.raw.destroy();
    return;
  }
  if (thrown instanceof VerbatimError) {
    reply
      .code(thrown.status)
      .headers({ ...thrown.headers, 'x-content-type-options': 'nosniff' })
      .send(thrown.body);
    return;
  }
  const error = toGatewayError(thrown);
  if (error.status === 500) {
    log.error({ err: error.cause, request_id: request.id, ...traceFields(request.trace) }, 'unhandled error');
  }
  if (error instanceof KeysRejectedError) request.userFault ??= 'user_key';
  reply.code(error.status).headers(error.headers).header('content-type', 'application/json; charset=utf-8');
  const body = JSON.stringify(errorBody(error, request.id));
  // A head that is too large is not kept until its body has come.
  if (error.status !== 431 && isBodyComing(request.raw)) answerEarly(request, reply, body);
  else reply.send(body);
}

/**
 * Installs the writer for thrown errors, unknown paths and known paths with another method. The latter two
 * are settled before a body is read.
 */
export function handleErrors(
  app: FastifyInstance,
  log: FastifyBaseLogger,
  methodsOf: (url: string) => readonly string[] | null,
): void {
  app.setErrorHandler((error, request, reply) => writeError(error, request, reply, log));
  app.addHook('onRequest', (request, _reply, done) => {
    done(request.is404 ? noRoute(methodsOf(request.raw.url ?? '')) : undefined);
  });
}

function noRoute(methods: readonly string[] | null): GatewayError {
  if (methods === null) return new NotFoundError('Unknown path.');
  const allow = { allow: methods.join(', ') };
  return new HttpRequestError(405, `Use ${methods.join(' or ')}.`, 'method_not_allowed', allow);
}
