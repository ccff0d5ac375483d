import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { clientNetwork } from '../core/client-network.ts';
import { HttpRequestError, InvalidRequestError } from '../core/errors.ts';
import { inexactNumberPath } from '../core/inexact-number.ts';
import { isBeyond } from '../core/json-values.ts';
import type { BodyBudget, BodyHold } from './body-budget.ts';
import { shownName } from './parse.ts';
import { ArrivingBodies, readBody } from './read-body.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What the body takes of the budget; null where there is none. Released with the response, at the latest. */
    bodyHold: BodyHold | null;
  }
}

/** Many times what a chat of the longest context needs; no more than is parsed in half a second. */
const maxValues = 1_000_000;
/** How deep a body may be is in the tables, which the route knows. */
const bounds = { values: maxValues, depth: Number.POSITIVE_INFINITY, keys: Number.POSITIVE_INFINITY };

const notJson = (what: string): Error =>
  new InvalidRequestError(`The body is not valid ${what}.`, null, 'invalid_json');

const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i;

function refusal(request: FastifyRequest, body: Buffer): Error | null {
  const encoding = request.headers['content-encoding']?.trim().toLowerCase() ?? '';
  if (encoding !== '' && encoding !== 'identity') {
    return new HttpRequestError(415, 'Compressed request bodies are not accepted.', 'unsupported_encoding');
  }
  const named = charset.exec(request.headers['content-type'] ?? '')?.[1]?.toLowerCase();
  if (named !== undefined && named !== 'utf-8' && named !== 'utf8') {
    return new HttpRequestError(415, 'The body must be UTF-8.', 'unsupported_charset');
  }
  if (!isUtf8(body)) return notJson('UTF-8');
  if (!isBeyond(body, bounds)) return null;
  return new InvalidRequestError(`The body holds more than ${maxValues} values.`, null, 'too_many_values');
}

/** Parses strictly: the value, or the error as a value. */
function jsonParser(app: FastifyInstance): (request: FastifyRequest, text: string) => unknown {
  const parser = (...actions: Parameters<FastifyInstance['getDefaultJsonParser']>) => {
    const parse = app.getDefaultJsonParser(...actions);
    return (request: FastifyRequest, text: string): { error: Error | null; value: unknown } => {
      let result: { error: Error | null; value: unknown } = { error: null, value: undefined };
      void parse(request, text, (error: Error | null, value?: unknown) => {
        result = { error, value };
      });
      return result;
    };
  };
  const strict = parser('error', 'error');
  const lenient = parser('ignore', 'ignore');
  const withoutProto = parser('error', 'ignore');
  return (request, text) => {
    const { error, value } = strict(request, text);
    if (error === null) return value;
    if (lenient(request, text).error !== null) return notJson('JSON');
    const key = withoutProto(request, text).error === null ? 'constructor.prototype' : '__proto__';
    return new InvalidRequestError(`The key ${key} is not allowed.`, key, 'forbidden_key');
  };
}

/** The value, or the error as a value; a number that could not be passed on unchanged is one. */
function parseExactly(
  request: FastifyRequest,
  body: Buffer,
  parseJson: ReturnType<typeof jsonParser>,
): unknown {
  const text = body.toString('utf8');
  const value = parseJson(request, text);
  const path = value instanceof Error ? null : inexactNumberPath(body, text);
  if (path === null) return value;
  const param = shownName(path);
  return new InvalidRequestError(`${param}: the number cannot be kept exactly.`, param, 'inexact_number');
}

/** Whom a body is booked to: the account, or the client's network where there is none. */
function holdFor(request: FastifyRequest, budget: BodyBudget): BodyHold {
  const account = (request as Partial<FastifyRequest>).account;
  // A socket forgets its peer once the client has left: Fastify's type does not say so.
  const { ip }: { readonly ip: string | undefined } = request;
  return budget.open(account?.userId ?? clientNetwork(ip ?? ''), account === undefined);
}

/**
 * Makes `application/json` the only body this service reads, strictly UTF-8, with `__proto__` and
 * `constructor.prototype` refused at any depth. An empty body is undefined; the routes say what is missing.
 * A refused body comes out as a value and is thrown one step later: an error of the parser itself would
 * close the connection.
 */
export function acceptOnlyJson(app: FastifyInstance, budget: BodyBudget, onShortage: () => void): void {
  const parseJson = jsonParser(app);
  const arriving = new ArrivingBodies();
  app.addHook('onClose', (_app, done) => {
    arriving.close();
    done();
  });
  app.decorateRequest('bodyHold', null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', (request, _payload, done) => {
    const hold = holdFor(request, budget);
    request.bodyHold = hold;
    const limits = { limitBytes: request.routeOptions.bodyLimit, hold, onShortage };
    readBody(request, limits, arriving, (error, body) => {
      if (body === null) return done(null, error);
      if (body.length === 0) return done(null, undefined);
      return done(null, refusal(request, body) ?? parseExactly(request, body, parseJson));
    });
  });
  app.addHook('preValidation', (request, _reply, done) => {
    if (!(request.body instanceof Error)) return done();
    request.bodyHold?.release();
    return done(request.body);
  });
}
