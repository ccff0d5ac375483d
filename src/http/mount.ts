import { METHODS } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { z } from 'zod';
import { storedId } from '../core/account/stored-id.ts';
import { NotFoundError } from '../core/errors.ts';
import { smallBodyBytes } from './body/body-budget.ts';
import type { PathParameter, Route, RouteName, Routes, RouteTable } from './route-table.ts';
import { pathParameters, routeList, routes } from './route-table.ts';
import { parseOrThrow } from './schemas/parse.ts';

type DeepReadonly<Value> = Value extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> }
    : Value;

type Parsed<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;
type FieldOf<Given extends Route, Field extends string> =
  Given extends Readonly<Record<Field, infer Value>> ? Value : undefined;

/** What a route answers when it succeeds. */
export type AnswerOf<Given extends Route> = Given['answer'] extends z.ZodType
  ? DeepReadonly<z.output<Given['answer']>>
  : undefined;

/** One call of a route, its texts parsed. */
export interface CallOf<Given extends Route> {
  readonly body: Parsed<FieldOf<Given, 'body'>>;
  readonly query: Parsed<FieldOf<Given, 'query'>>;
  /** The parameters of the path, decoded, by their names; the id of a key as it is stored. */
  readonly params: { readonly [Name in PathParameter<Given['path']>]: string };
  readonly request: FastifyRequest;
  /** For further headers. */
  readonly reply: FastifyReply;
}

type HandlerOf<Given extends Route> = Given extends { readonly story: true }
  ? (request: FastifyRequest, reply: FastifyReply) => Promise<void>
  : (call: CallOf<Given>) => AnswerOf<Given> | Promise<AnswerOf<Given>>;

/** What some routes of a table do, by their names: one that is missing, or answers otherwise, does not compile. */
export type HandlersOf<Table extends RouteTable, Name extends keyof Table = keyof Table> = {
  readonly [Key in Name]: HandlerOf<Table[Key]>;
};

/** The same of the API port. */
export type RouteAnswer<Name extends RouteName> = AnswerOf<Routes[Name]>;
export type Call<Name extends RouteName> = CallOf<Routes[Name]>;
export type Handlers<Name extends RouteName = RouteName> = HandlersOf<Routes, Name>;

type AnyHandler = (call: CallOf<Route>) => unknown;
type StoryHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/** The path as Fastify's router writes it. */
function routerPath(route: Route): string {
  return route.path.replace(/\{(\w+)\}/g, route.openEnd === true ? '*' : ':$1');
}

function paramsOf(route: Route, request: FastifyRequest): Readonly<Record<string, string>> {
  const params = request.params as Readonly<Record<string, string>>;
  if (route.openEnd === true)
    return Object.fromEntries(pathParameters(route).map((name) => [name, params['*'] ?? '']));
  const { key_id } = params;
  return key_id === undefined ? params : { ...params, key_id: storedId(key_id) };
}

function answering(route: Route, handler: AnyHandler) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const answer = await handler({
      body: (route.body && parseOrThrow(route.body, request.body)) as never,
      query: (route.query && parseOrThrow(route.query, request.query)) as never,
      params: paramsOf(route, request) as never,
      request,
      reply,
    });
    reply.code(route.status);
    return route.answer === null ? reply.send() : answer;
  };
}

/** Registers these routes of a table on `scope`, each as it says. `onRequest` runs before their bodies are read. */
export function mountTable<Table extends RouteTable, Name extends keyof Table>(
  scope: FastifyInstance,
  table: Table,
  handlers: HandlersOf<Table, Name>,
  onRequest: onRequestHookHandler[] = [],
): void {
  for (const [name, handler] of Object.entries(handlers)) {
    const route = table[name] as Route;
    const { method } = route;
    const options = { method, url: routerPath(route), onRequest };
    if (route.story === true) {
      const bodyLimit = scope.initialConfig.bodyLimit ?? smallBodyBytes;
      scope.route({ ...options, bodyLimit, handler: handler as StoryHandler });
    } else scope.route({ ...options, handler: answering(route, handler as AnyHandler) });
  }
}

/** The same of the API port. */
export function mountRoutes<Name extends RouteName>(
  scope: FastifyInstance,
  handlers: Handlers<Name>,
  onRequest: onRequestHookHandler[] = [],
): void {
  mountTable<Routes, Name>(scope, routes, handlers, onRequest);
}

const refuse = async (): Promise<never> => {
  throw new NotFoundError('This route needs a database, which this deployment runs without.', {
    code: 'not_in_profile',
  });
};

/** Routes that need a database, in a profile without one: a clear answer to any method instead of an unknown path. */
export function refuseStoreRoutes(app: FastifyInstance, list: readonly Route[] = routeList): void {
  // `all` means those that Fastify knows, which are fewer than Node lets through.
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  const paths = new Set(list.filter(({ needsStore }) => needsStore).map(routerPath));
  for (const path of paths) app.all(path, { onRequest: refuse }, async () => undefined);
}
