import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { errorCodes } from 'fastify';
import { longestKnownBody } from '../../chat/known-cache-keys.ts';
import type { LaterTurns } from '../../chat/later-turn.ts';
import { longestOfOneTurn } from '../../chat/later-turn.ts';
import { ApiError, HttpRequestError, InvalidRequestError, overloaded } from '../../core/errors.ts';
import { keepLongNumbers } from '../../core/json/inexact-number.ts';
import type { JsonAllowance } from '../../core/json/json-allowance.ts';
import { parseStrictJson } from '../../core/json/strict-json.ts';
import { clientNetwork } from '../../core/net/client-network.ts';
import { TimedTurns } from '../../timed-turns.ts';
import { peerAddress } from '../access/peer-address.ts';
import { announcesBody } from '../answers/linger.ts';
import { headCost } from '../connections/head-cost.ts';
import { gatewayHeaders } from '../gateway-headers.ts';
import { routes } from '../route-table.ts';
import { notJson, shownParam } from '../schemas/parse.ts';
import type { BodyBudget, BodyHold } from './body-budget.ts';
import { smallBodyBytes } from './body-budget.ts';
import { bodyCost } from './body-cost.ts';
import { costlyJson, jsonAllowanceFor, mostKeys } from './costly-json.ts';
import { ArrivingBodies, readBody } from './read-body.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What the body takes of the budget; null where there is none. Released with the response, at the latest. */
    bodyHold: BodyHold | null;
    /** What is left for texts of the body that are read as JSON later. */
    jsonAllowance: JsonAllowance;
    /** The text of a short body with today's header of the cache; no other is kept, least of all one with a key. */
    bodyText: string | null;
  }
}

/** To read, check and pass on a body of more values takes 2 ms or more; hundreds of them may end in one turn. */
const manyValues = 2048;
/** What such bodies, and all over 64 KiB, have of a turn together: who comes later has the next one. */
const costlyTurnMs = 50;

/** As nearly everybody sends it. */
const plainType = 'application/json';
const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i;

function refusal(request: FastifyRequest, body: Buffer): Error | null {
  const encoding = request.headers['content-encoding']?.trim().toLowerCase() ?? '';
  if (encoding !== '' && encoding !== 'identity') {
    return new HttpRequestError(415, 'Compressed request bodies are not accepted.', 'unsupported_encoding');
  }
  const type = request.headers['content-type'] ?? '';
  const named = type === plainType ? undefined : charset.exec(type)?.[1]?.toLowerCase();
  if (named !== undefined && named !== 'utf-8' && named !== 'utf8') {
    return new HttpRequestError(415, 'The body must be UTF-8.', 'unsupported_charset');
  }
  return isUtf8(body) ? null : notJson('The body is not valid UTF-8.');
}

/**
 * The value, or the error as a value; a number that we read and cannot keep is one. What is known of a body
 * before it is parsed decides whether there is room for it. What throws on the way, in Node's parser or in a turn of
 * its own, is this request's error too. `yield`: a large one goes on in another turn; the first one says whether there
 * are many values.
 */
function* readWithin(request: FastifyRequest, hold: BodyHold, body: Buffer): Generator<boolean, unknown> {
  try {
    const refused = refusal(request, body);
    if (refused !== null) return refused;
    request.jsonAllowance = jsonAllowanceFor(body);
    const tally = request.jsonAllowance.take(body, mostKeys);
    if (typeof tally === 'string') return costlyJson(tally, null);
    const cost = bodyCost(body, tally.values, tally.spellsByNumber);
    if (!hold.grow(body.length, cost)) return overloaded();
    yield tally.values > manyValues;
    const text = body.toString('utf8');
    const wishesCache = request.headers[gatewayHeaders.cache.lowerName] !== undefined;
    if (wishesCache && text.length <= longestKnownBody) request.bodyText = text;
    yield true;
    const parsed = parseStrictJson(text, tally.spellsByNumber);
    if (parsed.kind === 'no-json') return notJson('The body is not valid JSON.');
    if (parsed.kind === 'forbidden-key') {
      return new InvalidRequestError(`The key ${parsed.key} is not allowed.`, parsed.key, 'forbidden_key');
    }
    const path = tally.longDigits === 0 ? null : keepLongNumbers(parsed.value, body, isChat(request));
    if (path === null) return parsed.value;
    const param = shownParam(path);
    return new InvalidRequestError(`${param}: the number cannot be kept exactly.`, param, 'inexact_number');
  } catch (cause) {
    return new ApiError(cause);
  }
}

/** The one route whose bodies are passed on. */
const isChat = ({ routeOptions }: FastifyRequest): boolean => routeOptions.url === routes.chat.path;

const otherType = (): Error => new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE();

const isTooLarge = (error: Error | null): boolean =>
  error instanceof HttpRequestError && error.status === 413;

function lastOf<Result>(steps: Iterator<unknown, Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Whom a body is booked to: the account, or the client's network where there is none. */
function holdFor(request: FastifyRequest, budget: BodyBudget): BodyHold {
  const account = (request as Partial<FastifyRequest>).account;
  const owner = account?.userId ?? clientNetwork(peerAddress(request));
  return budget.open(owner, account === undefined, headCost(request.raw));
}

/**
 * Makes `application/json` the only body this service reads, strictly UTF-8, with `__proto__` and
 * `constructor.prototype` refused at any depth. An empty body is undefined; the routes say what is missing.
 * A refused body comes out as a value and is thrown one step later: an error of the parser itself would
 * close the connection. Hands out the bodies on their way.
 */
export function acceptOnlyJson(
  app: FastifyInstance,
  budget: BodyBudget,
  later: LaterTurns,
): Pick<ArrivingBodies, 'refuseAll'> {
  const arriving = new ArrivingBodies();
  const costly = new TimedTurns(costlyTurnMs);
  app.addHook('onClose', (_app, done) => {
    arriving.close();
    done();
  });
  app.decorateRequest('bodyHold', null);
  app.decorateRequest('bodyText', null);
  app.decorateRequest('jsonAllowance');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', (request, _payload, done) => {
    const hold = holdFor(request, budget);
    request.bodyHold = hold;
    const limits = { limitBytes: request.routeOptions.bodyLimit, hold };
    readBody(request, limits, arriving, (error, body) => {
      if (body === null) return done(null, error);
      if (body.length === 0) return done(null, undefined);
      const steps = readWithin(request, hold, body);
      if (body.length > longestOfOneTurn) {
        return void later.run(steps).then((value) => done(null, value), done);
      }
      // What follows is done in the same turn: it is checked, and written for its vendor.
      const finish = (): void => done(null, lastOf(steps));
      if (body.length > smallBodyBytes) return void costly.run(finish);
      const first = steps.next();
      if (first.done === true) return done(null, first.value);
      return first.value ? void costly.run(finish) : finish();
    });
  });
  // A method that needs no body may name its type all the same, as form posts of curl do, and stock clients send none
  // in chunks: only the first byte tells.
  app.addContentTypeParser('*', (request, _payload, done) => {
    const { headers } = request;
    if (!announcesBody(headers)) return done(null, undefined);
    if (headers['transfer-encoding'] === undefined) return done(null, otherType());
    const hold = holdFor(request, budget);
    request.bodyHold = hold;
    readBody(request, { limitBytes: 0, hold }, arriving, (error) =>
      done(null, isTooLarge(error) ? otherType() : (error ?? undefined)),
    );
  });
  app.addHook('preValidation', (request, _reply, done) => {
    if (!(request.body instanceof Error)) return done();
    request.bodyHold?.release();
    return done(request.body);
  });
  return arriving;
}

/** Gives back what the body of a request holds, however the request ended. */
export function releaseBody(request: FastifyRequest): void {
  request.bodyHold?.release();
  // Whoever refused without reading the body has left its connection paused.
  request.earlyBody?.take();
}
