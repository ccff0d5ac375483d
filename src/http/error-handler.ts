import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ClientGoneError } from '../chat/answer-chat.ts';
import { VerbatimError } from '../chat/verbatim-error.ts';
import type { CallTrace } from '../core/chat-call.ts';
import { errorBody } from '../core/error-body.ts';
import {
  ApiError,
  GatewayError,
  HttpRequestError,
  InvalidRequestError,
  NotFoundError,
} from '../core/errors.ts';

/** Fastify's own errors, by code → ours. */
function fromFramework(error: Error & { code?: string; statusCode?: number }): GatewayError | null {
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new HttpRequestError(413, 'The request body is too large.', 'body_too_large');
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new HttpRequestError(415, 'Content-Type must be application/json.', 'unsupported_media_type');
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
      return new InvalidRequestError('The body is not valid JSON.', null, 'invalid_json');
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_ASYNC_CONSTRAINT':
      return new NotFoundError('Unknown path.');
    case 'ECONNRESET':
    case 'ECONNABORTED':
      return new HttpRequestError(408, 'The request body did not arrive whole.', 'request_aborted');
    default:
      return null;
  }
}

/** Any thrown value → an error with a place in SPEC 7. Unknown ones are 500 with a fixed text. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  return (thrown instanceof Error ? fromFramework(thrown) : null) ?? new ApiError(thrown);
}

/** The names of the access line. */
function traceFields(trace: CallTrace | null | undefined): Readonly<Record<string, string>> {
  if (trace == null) return {};
  return { trace_id: trace.traceId, span_id: trace.spanId, trace_flags: trace.sampled ? '01' : '00' };
}

/** The one place that writes errors. */
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
    log.error({ err: error.cause, requestId: request.id, ...traceFields(request.trace) }, 'unhandled error');
  }
  reply
    .code(error.status)
    .headers(error.headers)
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(errorBody(error, request.id)));
}

/** Installs the writer for thrown errors, unknown paths and known paths with another method. */
export function handleErrors(
  app: FastifyInstance,
  methodsOf: (url: string) => readonly string[] | null,
): void {
  app.setErrorHandler((error, request, reply) => writeError(error, request, reply, app.log));
  app.setNotFoundHandler((request, reply) => {
    const methods = methodsOf(request.raw.url ?? '');
    const error =
      methods === null
        ? new NotFoundError('Unknown path.')
        : new HttpRequestError(405, `Use ${methods.join(' or ')}.`, 'method_not_allowed', {
            allow: methods.join(', '),
          });
    writeError(error, request, reply, app.log);
  });
}
