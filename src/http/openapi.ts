import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { chatRequestWithDeveloperSchema } from '../core/request/chat-request.ts';
import { contentFieldNames } from '../core/request/content-fields.ts';
import type { RoutingTablesDocument } from '../core/tables/routing-tables.ts';
import { errorBodySchema } from './answer-schemas.ts';
import { requestIdHeader } from './request-id.ts';
import type { Route } from './route-table.ts';
import { pathParameter, routeList } from './route-table.ts';

type Json = Record<string, unknown>;

function jsonSchema(schema: z.ZodType): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest;
}

const text = { type: 'string' } as const;
const jsonContent = (schema: Json): Json => ({ 'application/json': { schema } });

/** Every answer carries it. */
const answerHeaders = { [requestIdHeader.name]: { description: 'Id of the request', schema: text } };

const failure = {
  description: 'Error',
  headers: {
    ...answerHeaders,
    'Retry-After': { description: 'Seconds until a repeat may help', schema: text },
    'X-Should-Retry': {
      description: 'Whether the OpenAI SDKs are to repeat it by themselves',
      schema: { type: 'string', enum: ['true', 'false'] },
    },
  },
  content: jsonContent({ $ref: '#/components/schemas/Error' }),
};

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

/** Of tables that say nothing of it. */
const plainChat: ChatRules = { developer_role: false, passthrough_fields: [] };
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

function parametersOf(route: Route): Json {
  const inPath = pathParameter(route);
  const inQuery = route.query === undefined ? {} : (jsonSchema(route.query)['properties'] as Json);
  const inHeaders = route.headers === undefined ? [] : [...Object.values(route.headers), requestIdHeader];
  const parameters = [
    ...(inPath === null ? [] : [{ name: inPath, in: 'path', required: true, schema: text }]),
    ...Object.entries(inQuery).map(([name, schema]) => ({ name, in: 'query', schema })),
    ...inHeaders.map(({ name, description }) => ({ name, in: 'header', description, schema: text })),
  ];
  return parameters.length === 0 ? {} : { parameters };
}

function success({ answer, story }: Route): Json {
  const described = { description: 'Success', headers: answerHeaders };
  if (answer === null) return described;
  const content = jsonContent(jsonSchema(answer));
  return {
    ...described,
    content: story === true ? { ...content, 'text/event-stream': { schema: text } } : content,
  };
}

function operation(route: Route, chat: ChatRules): Json {
  return {
    summary: route.summary,
    responses: { [route.status]: success(route), default: failure },
    ...requestBody(route, chat),
    ...parametersOf(route),
    ...(route.auth === 'service-key' ? {} : { security: [] }),
  };
}

function paths(chat: ChatRules): Json {
  const described: Record<string, Json> = {};
  for (const route of routeList) {
    if (route.undescribed === true) continue;
    described[route.path] = {
      ...described[route.path],
      [route.method.toLowerCase()]: operation(route, chat),
    };
  }
  return described;
}

/** The version of package.json, two folders above both src/http and dist/http. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return String((JSON.parse(text) as { version?: string }).version);
}

/** The OpenAPI 3.1 description, made from the table of routes, as chat bodies are taken under these tables. */
export function openApiDocument(chat = plainChat): Json {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Model Gateway',
      version: packageVersion(),
      description: 'LLM gateway in the OpenAI Chat Completions shape, bring-your-own-key.',
    },
    security: [{ serviceKey: [] }],
    paths: paths(chat),
    components: {
      schemas: { Error: jsonSchema(errorBodySchema) },
      securitySchemes: { serviceKey: { type: 'http', scheme: 'bearer' } },
    },
  };
}
