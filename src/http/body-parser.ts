import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { HttpRequestError, InvalidRequestError } from '../core/errors.ts';

type Done = (error: Error | null, body?: unknown) => void;

const notJson = (what: string): Error =>
  new InvalidRequestError(`The body is not valid ${what}.`, null, 'invalid_json');

const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i;

function refusal(request: FastifyRequest): Error | null {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return new HttpRequestError(415, 'Compressed request bodies are not accepted.', 'unsupported_encoding');
  }
  const named = charset.exec(request.headers['content-type'] ?? '')?.[1]?.toLowerCase();
  if (named !== undefined && named !== 'utf-8' && named !== 'utf8') {
    return new HttpRequestError(415, 'The body must be UTF-8.', 'unsupported_charset');
  }
  return null;
}

/**
 * Makes `application/json` the only body this service reads, strictly UTF-8, with `__proto__` and
 * `constructor.prototype` refused at any depth. An empty body is undefined; the routes say what is missing.
 * A body that was read whole but is refused comes out as a value and is thrown one step later: an error of
 * the parser itself would close the connection, which only a half-read body calls for.
 */
export function acceptOnlyJson(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, body, done: Done) => {
    const refused = refusal(request) ?? (isUtf8(body) ? null : notJson('UTF-8'));
    if (refused !== null) return done(null, refused);
    if (body.length === 0) return done(null, undefined);
    return parseJson(request, body.toString('utf8'), (error: Error | null, value?: unknown) => {
      done(null, error === null ? value : notJson('JSON'));
    });
  });
  app.addHook('preValidation', (request, _reply, done) => {
    done(request.body instanceof Error ? request.body : undefined);
  });
}
