import { z } from 'zod';
import {
  newServiceKeySchema,
  registerKeySchema,
  registerUserSchema,
} from '../core/account/account-requests.ts';
import { chatRequestSchema } from '../core/request/chat-request.ts';
import { gatewayHeaders } from './gateway-headers.ts';
import type { Method } from './route-methods.ts';
import {
  chatCompletionSchema,
  keyCheckSchema,
  modelEntrySchema,
  modelListSchema,
  newServiceKeyRecordSchema,
  providerKeyRecordSchema,
  registeredUserSchema,
  serviceKeyRecordSchema,
  statsSchema,
} from './schemas/answer-schemas.ts';
import { explainedLogRowSchema, logPageSchema } from './schemas/log-schemas.ts';
import { logsQuerySchema, statsQuerySchema } from './schemas/query-schemas.ts';

/**
 * One route of the API port, or of the admin API (`admin-routes.ts`). Its registration (`mount.ts`), the 405s of its
 * path (`route-methods.ts`), the 404 of a profile without a database and the OpenAPI description (`openapi.ts`) follow
 * from it.
 */
export interface Route {
  readonly method: Exclude<Method, 'HEAD'>;
  /** As the description writes it: `/v1/keys/{key_id}`. */
  readonly path: string;
  /** Its one parameter, at the end, may hold slashes, encoded or not. */
  readonly openEnd?: true;
  readonly summary: string;
  /** Who may call it: the holder of a service key, whom the registration policy lets in, or operators. */
  readonly auth: 'service-key' | 'registration' | 'admin-token';
  /** Refused with `not_in_profile` where there is no database. */
  readonly needsStore: boolean;
  /** What the body is parsed with before the handler is called. */
  readonly body?: z.ZodType;
  readonly query?: z.ZodType;
  /** Reads the headers of `gateway-headers.ts`. */
  readonly headers?: typeof gatewayHeaders;
  /** The handler parses its body, which may be large, and writes its answer itself: as JSON, or as events. */
  readonly story?: true;
  /** What succeeds; null: an answer without a body. Handlers are held to the type, nothing is checked while serving. */
  readonly status: 200 | 201 | 204;
  readonly answer: z.ZodType | null;
  /** Left out of the description. */
  readonly undescribed?: true;
}

export const isOfAdminApi = ({ auth }: Route): boolean => auth === 'admin-token';

export type RouteTable = Readonly<Record<string, Route>>;

/** All routes of the API port, in the order of the description. */
export const routes = {
  registerUser: {
    method: 'POST',
    path: '/v1/users',
    summary: 'Register a user; the service key is shown once',
    auth: 'registration',
    needsStore: true,
    body: registerUserSchema,
    status: 201,
    answer: registeredUserSchema,
  },
  addKey: {
    method: 'POST',
    path: '/v1/keys',
    summary: 'Register a provider key',
    auth: 'service-key',
    needsStore: true,
    body: registerKeySchema,
    status: 201,
    answer: providerKeyRecordSchema,
  },
  listKeys: {
    method: 'GET',
    path: '/v1/keys',
    summary: 'List the provider keys',
    auth: 'service-key',
    needsStore: true,
    status: 200,
    answer: z.array(providerKeyRecordSchema),
  },
  deleteKey: {
    method: 'DELETE',
    path: '/v1/keys/{key_id}',
    summary: 'Delete a provider key',
    auth: 'service-key',
    needsStore: true,
    status: 204,
    answer: null,
  },
  addServiceKey: {
    method: 'POST',
    path: '/v1/service-keys',
    summary: 'Make another service key; it is shown once',
    auth: 'service-key',
    needsStore: true,
    body: newServiceKeySchema,
    status: 201,
    answer: newServiceKeyRecordSchema,
  },
  listServiceKeys: {
    method: 'GET',
    path: '/v1/service-keys',
    summary: 'List the service keys',
    auth: 'service-key',
    needsStore: true,
    status: 200,
    answer: z.array(serviceKeyRecordSchema),
  },
  deleteServiceKey: {
    method: 'DELETE',
    path: '/v1/service-keys/{key_id}',
    summary: 'Revoke a service key, unless it is the only one that is live',
    auth: 'service-key',
    needsStore: true,
    status: 204,
    answer: null,
  },
  checkKey: {
    method: 'POST',
    path: '/v1/keys/{key_id}/check',
    summary: 'Ask the vendor whether it knows a provider key',
    auth: 'service-key',
    needsStore: true,
    status: 200,
    answer: keyCheckSchema,
  },
  chat: {
    method: 'POST',
    path: '/v1/chat/completions',
    summary: 'Chat completion, JSON or server-sent events',
    auth: 'service-key',
    needsStore: false,
    body: chatRequestSchema,
    headers: gatewayHeaders,
    story: true,
    status: 200,
    answer: chatCompletionSchema,
  },
  readLogs: {
    method: 'GET',
    path: '/v1/logs',
    summary: 'Request logs, newest first',
    auth: 'service-key',
    needsStore: true,
    query: logsQuerySchema,
    status: 200,
    answer: logPageSchema,
  },
  explainLog: {
    method: 'GET',
    path: '/v1/logs/{log_id}',
    summary: 'One request: candidates, attempts, price, cache',
    auth: 'service-key',
    needsStore: true,
    status: 200,
    answer: explainedLogRowSchema,
  },
  readStats: {
    method: 'GET',
    path: '/v1/stats',
    summary: 'Sums over the request logs',
    auth: 'service-key',
    needsStore: true,
    query: statsQuerySchema,
    status: 200,
    answer: statsSchema,
  },
  listModels: {
    method: 'GET',
    path: '/v1/models',
    summary: 'Modes, and override targets beside them',
    auth: 'service-key',
    needsStore: false,
    status: 200,
    answer: modelListSchema,
  },
  findModel: {
    method: 'GET',
    path: '/v1/models/{id}',
    openEnd: true,
    summary: 'One mode',
    auth: 'service-key',
    needsStore: false,
    status: 200,
    answer: modelEntrySchema,
  },
  describe: {
    method: 'GET',
    path: '/openapi.json',
    summary: 'This description',
    auth: 'service-key',
    needsStore: false,
    status: 200,
    answer: z.record(z.string(), z.unknown()),
    undescribed: true,
  },
} as const satisfies RouteTable;

export type Routes = typeof routes;
export type RouteName = keyof Routes;

/** The names of the routes for which `Field` has `Value`. */
export type RouteNameWith<Field extends keyof Route, Value> = {
  [Name in RouteName]: Routes[Name] extends Readonly<Record<Field, Value>> ? Name : never;
}[RouteName];

/** All of them, as equals. */
export const routeList: readonly Route[] = Object.values(routes);

/** The names of the parameters in a path, as a type. */
export type PathParameter<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | PathParameter<Rest>
  : never;

/** The same, in their order. */
export function pathParameters({ path }: Pick<Route, 'path'>): readonly string[] {
  return Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = '']) => name);
}
