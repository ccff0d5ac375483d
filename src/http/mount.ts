import { METHODS } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { z } from 'zod';
import { NotFoundError } from '../core/errors.ts';
import { smallBodyBytes } from './body-budget.ts';
import { parseOrThrow } from './parse.ts';
import type { Route, RouteName, Routes } from './route-table.ts';
import { pathParameter, routeList, routes } from './route-table.ts';

type DeepReadonly<Value> = Value extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> }
    : Value;

type Parsed<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;
type FieldOf<Name extends RouteName, Field extends string> =
  Routes[Name] extends Readonly<Record<Field, infer Value>> ? Value : undefined;

/** What a route answers when it succeeds. */
export type Answer<Name extends RouteName> = Routes[Name]['answer'] extends z.ZodType
  ? DeepReadonly<z.output<Routes[Name]['answer']>>
  : undefined;

/** One call of a route, its texts parsed. */
export interface Call<Name extends RouteName> {
  readonly body: Parsed<FieldOf<Name, 'body'>>;
  readonly query: Parsed<FieldOf<Name, 'query'>>;
  /** The parameter of the path, decoded; empty where there is none. */
  readonly param: string;
  readonly request: FastifyRequest;
  /** For further headers. */
  readonly reply: FastifyReply;
}

type Handler<Name extends RouteName> = Routes[Name] extends { readonly story: true }
  ? (request: FastifyRequest, reply: FastifyReply) => Promise<void>
  : (call: Call<Name>) => Answer<Name> | Promise<Answer<Name>>;

/** What the routes do, by their names: one that is missing, or answers otherwise than described, does not compile. */
export type Handlers<Name extends RouteName = RouteName> = { readonly [Key in Name]: Handler<Key> };

type AnyHandler = (call: Call<RouteName>) => unknown;
type StoryHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/** The path as Fastify's router writes it. */
function routerPath(route: Route): string {
  return route.path.replace(/\{(\w+)\}/, route.openEnd === true ? '*' : ':$1');
}

function paramOf(route: Route, request: FastifyRequest): string {
  const name = pathParameter(route);
  if (name === null) return '';
  return (request.params as Readonly<Record<string, string>>)[route.openEnd === true ? '*' : name] ?? '';
}

function answering(route: Route, handler: AnyHandler) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const answer = await handler({
      body: (route.body && parseOrThrow(route.body, request.body)) as never,
      query: (route.query && parseOrThrow(route.query, request.query)) as never,
      param: paramOf(route, request),
      request,
      reply,
    });
    reply.code(route.status);
    return route.answer === null ? reply.send() : answer;
  };
}

/** Registers these routes on `scope`, each as the table says. `onRequest` runs before their bodies are read. */
export function mountRoutes<Name extends RouteName>(
  scope: FastifyInstance,
  handlers: Handlers<Name>,
  onRequest: onRequestHookHandler[] = [],
): void {
  for (const [name, handler] of Object.entries(handlers)) {
    const route: Route = routes[name as Name];
    const { method } = route;
    const options = { method, url: routerPath(route), onRequest };
    if (route.story === true) {
      const bodyLimit = scope.initialConfig.bodyLimit ?? smallBodyBytes;
      scope.route({ ...options, bodyLimit, handler: handler as StoryHandler });
    } else scope.route({ ...options, handler: answering(route, handler as AnyHandler) });
  }
}

const refuse = async (): Promise<never> => {
  throw new NotFoundError('This route needs a database, which this deployment runs without.', {
    code: 'not_in_profile',
  });
};

/** Routes that need a database, in a profile without one: a clear answer to any method instead of an unknown path. */
export function refuseStoreRoutes(app: FastifyInstance): void {
  // `all` means those that Fastify knows, which are fewer than Node lets through.
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  const paths = new Set(routeList.filter(({ needsStore }) => needsStore).map(routerPath));
  for (const path of paths) app.all(path, { onRequest: refuse }, async () => undefined);
}
