import { z } from 'zod';
import { chatRequestWithDeveloperSchema } from '../../core/request/chat-request.ts';
import { contentFieldNames } from '../../core/request/content-fields.ts';
import type { RoutingTablesDocument } from '../../core/tables/routing-tables.ts';
import type { RegistrationPolicy } from '../access/registration-policy.ts';
import { adminRouteList } from '../admin/admin-routes.ts';
import { requestIdHeader } from '../request-id.ts';
import type { Route } from '../route-table.ts';
import { isOfAdminApi, pathParameters, routeList } from '../route-table.ts';
import { answerHeadersOf, errorHeadersOf } from './answer-header-schemas.ts';
import { errorBodySchema } from './answer-schemas.ts';

type Json = Record<string, unknown>;

function jsonSchema(schema: z.ZodType): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest;
}

const text = { type: 'string' } as const;
const jsonContent = (schema: Json) => ({ 'application/json': { schema } });

const errorSchema = { $ref: '#/components/schemas/Error' };
const failure = (route: Route) => ({
  description: 'Error',
  headers: errorHeadersOf(route),
  content: jsonContent(errorSchema),
});
/** Without a type: readers of such a stream disagree on whether one event is a text or an object. */
const events = { description: 'Events of `chat.completion.chunk`, then `[DONE]`' };
const verbatim = { description: "An override's vendor answered it: its own words, whatever they are" };

/** The error of an override is the vendor's, untouched (SPEC 4.5). */
function failureOf(route: Route): Json {
  if (route.story !== true) return failure(route);
  const error = { anyOf: [errorSchema, verbatim] };
  return { ...failure(route), content: { ...jsonContent(error), '*/*': { schema: verbatim } } };
}

/** Optional fields of a chat body may be null, which is as if they were left out. */
function nullable(schema: Json): Json {
  const required = schema['required'] as readonly string[];
  const properties = Object.entries(schema['properties'] as Record<string, Json>).map(([name, property]) => [
    name,
    required.includes(name) ? property : { anyOf: [property, { type: 'null' }] },
  ]);
  return { ...schema, properties: Object.fromEntries(properties) as Json };
}

type ChatRules = RoutingTablesDocument['chat'];

/** What the description depends on beside the table of routes. */
export interface ApiFacts {
  /** What the tables in use say of chat bodies. */
  readonly chat: ChatRules;
  /** False in a profile without a database, whose routes that need one are `not_in_profile`. */
  readonly hasStore: boolean;
  readonly registration: RegistrationPolicy['mode'];
  /** True where the admin port has the admin API, and the reader may know of it. */
  readonly hasAdminApi: boolean;
}

/** Of a gateway whose tables and settings say nothing of it. */
export const byDefault: ApiFacts = {
  chat: { developer_role: false, passthrough_fields: [] },
  hasStore: true,
  registration: 'open',
  hasAdminApi: false,
};

/** Whether this gateway has the route: one that answers everybody 403 or 404 is none. */
function isThere({ undescribed, needsStore, auth }: Route, { hasStore, registration }: ApiFacts): boolean {
  if (undescribed === true || (needsStore && !hasStore)) return false;
  return auth !== 'registration' || registration !== 'closed';
}
/** The operator lets the field through, whatever it holds; the vendor judges it (docs/decisions/0003). */
function passedThrough(name: string): Json {
  const elsewhere = contentFieldNames.includes(name)
    ? 'vendors and models that do not take it are not asked'
    : 'left out, and named in attempts, where a vendor or model does not take it';
  return { description: `Passed to the vendor unvalidated; ${elsewhere}` };
}

/** What a chat body may be under these tables (`parseChatBody`). */
function chatBody(body: z.ZodType, { developer_role, passthrough_fields }: ChatRules): Json {
  const schema = nullable(jsonSchema(developer_role ? chatRequestWithDeveloperSchema : body));
  const known = schema['properties'] as Json;
  const unvalidated = passthrough_fields.filter((name) => !Object.hasOwn(known, name));
  const passed = Object.fromEntries(unvalidated.map((name) => [name, passedThrough(name)]));
  return { ...schema, properties: { ...known, ...passed } };
}

function requestBody({ body, story }: Route, chat: ChatRules): Json {
  if (body === undefined) return {};
  const schema = story === true ? chatBody(body, chat) : jsonSchema(body);
  return { requestBody: { required: true, content: jsonContent(schema) } };
}

/** What asks for something else than a service key says so. */
function securityOf({ auth }: Route, { registration }: ApiFacts): Json {
  if (auth === 'service-key') return {};
  if (auth === 'admin-token') return { security: [{ adminToken: [] }] };
  return { security: registration === 'token' ? [{ registrationToken: [] }] : [] };
}

/** Lists are written with commas. */
const inQueryAs = (name: string, { description, ...schema }: Json, required: boolean): Json => ({
  name,
  in: 'query',
  ...(required && { required }),
  ...(description !== undefined && { description }),
  ...(schema['type'] === 'array' && { style: 'form', explode: false }),
  schema,
});

function parametersOf(route: Route): Json {
  const { properties = {}, required = [] } = (route.query === undefined ? {} : jsonSchema(route.query)) as {
    readonly properties?: Readonly<Record<string, Json>>;
    readonly required?: readonly string[];
  };
  const inHeaders = route.headers === undefined ? [] : [...Object.values(route.headers), requestIdHeader];
  const parameters = [
    ...pathParameters(route).map((name) => ({ name, in: 'path', required: true, schema: text })),
    ...Object.entries(properties).map(([name, schema]) => inQueryAs(name, schema, required.includes(name))),
    ...inHeaders.map(({ name, description, schema }) => ({ name, in: 'header', description, schema })),
  ];
  return parameters.length === 0 ? {} : { parameters };
}

function success(route: Route): Json {
  const { answer, story } = route;
  const described = { description: 'Success', headers: answerHeadersOf(route) };
  if (answer === null) return described;
  const content = jsonContent(jsonSchema(answer));
  return {
    ...described,
    content: story === true ? { ...content, 'text/event-stream': { schema: events } } : content,
  };
}

/** Where `kubectl port-forward` opens it. */
const adminPort = [{ url: 'http://127.0.0.1:9090', description: 'The admin port' }];

function operation(route: Route, facts: ApiFacts): Json {
  return {
    ...(isOfAdminApi(route) && { tags: ['admin'], servers: adminPort }),
    summary: route.summary,
    responses: { [route.status]: success(route), default: failureOf(route) },
    ...requestBody(route, facts.chat),
    ...parametersOf(route),
    ...securityOf(route, facts),
  };
}

function paths(facts: ApiFacts): Json {
  const described: Record<string, Json> = {};
  for (const route of facts.hasAdminApi ? [...routeList, ...adminRouteList] : routeList) {
    if (!isThere(route, facts)) continue;
    described[route.path] = {
      ...described[route.path],
      [route.method.toLowerCase()]: operation(route, facts),
    };
  }
  return described;
}

const bearer = { type: 'http', scheme: 'bearer' } as const;

/** The OpenAPI 3.1 description, made from the table of routes, of this release with these tables and settings. */
export function openApiDocument(version: string, facts = byDefault): Json {
  const hasToken = facts.hasStore && facts.registration === 'token';
  return {
    openapi: '3.1.0',
    info: {
      title: 'Model Gateway',
      version,
      description: 'LLM gateway in the OpenAI Chat Completions shape, bring-your-own-key.',
    },
    security: [{ serviceKey: [] }],
    paths: paths(facts),
    components: {
      schemas: { Error: jsonSchema(errorBodySchema) },
      securitySchemes: {
        serviceKey: bearer,
        ...(hasToken && { registrationToken: bearer }),
        ...(facts.hasAdminApi && { adminToken: bearer }),
      },
    },
  };
}

/**
 * The description at hand. It is made when the tables say something else of chat bodies, not for each who asks: that
 * takes 2 ms of everybody's time.
 */
export function describedApi(version: string, facts: () => ApiFacts): () => Json {
  let made: { readonly chat: ApiFacts['chat']; readonly document: Json } | null = null;
  return () => {
    const now = facts();
    if (made?.chat !== now.chat) made = { chat: now.chat, document: openApiDocument(version, now) };
    return made.document;
  };
}
