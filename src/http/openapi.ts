import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { registerKeySchema, registerUserSchema } from '../core/account-requests.ts';
import { chatRequestSchema } from '../core/chat-request.ts';
import {
  chatCompletionSchema,
  logPageSchema,
  modelEntrySchema,
  modelListSchema,
  providerKeyRecordSchema,
  registeredUserSchema,
  statsSchema,
} from './answer-schemas.ts';
import { logsQuerySchema } from './routes/logs.ts';
import { statsQuerySchema } from './routes/stats.ts';

type Json = Record<string, unknown>;

function jsonSchema(schema: z.ZodType): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest;
}

/** Query parameters from an object schema. */
function queryParameters(schema: z.ZodType): Json[] {
  const properties = jsonSchema(schema)['properties'] as Record<string, Json>;
  return Object.entries(properties).map(([name, property]) => ({ name, in: 'query', schema: property }));
}

const errorSchema = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string().nullable(),
    request_id: z.string(),
    attempts: z
      .array(
        z.object({
          provider: z.string(),
          model: z.string(),
          status: z.int().nullable(),
          reason: z.string(),
          latency_ms: z.int(),
          dropped: z.array(z.string()).optional(),
        }),
      )
      .optional(),
  }),
});

const headerNames: Readonly<Record<string, string>> = {
  'X-Gateway-Cache': '"true" opts in to cache look-up and store',
  'X-Gateway-Cache-TTL': 'Seconds, clamped to 60..86400; default 3600',
  'X-Gateway-Override-Model':
    '<provider>:<model>; self_hosted/<label or key id>:<model> picks one of several keys',
  'X-Gateway-Residency': '"india" restricts routing to India-residency keys',
  'X-Gateway-Timeout': 'Seconds per upstream attempt, clamped to 1..300',
  'X-Request-ID': '[A-Za-z0-9_-]{1,128}; echoed on every response',
};

/** Every answer carries it. */
const requestIdHeader = { 'X-Request-ID': { description: 'Id of the request', schema: { type: 'string' } } };

const failure = {
  description: 'Error',
  headers: {
    ...requestIdHeader,
    'Retry-After': { description: 'Seconds until a repeat may help', schema: { type: 'string' } },
    'X-Should-Retry': {
      description: 'Whether the OpenAI SDKs are to repeat it by themselves',
      schema: { type: 'string', enum: ['true', 'false'] },
    },
  },
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};

const jsonContent = (schema: z.ZodType): Json => ({ 'application/json': { schema: jsonSchema(schema) } });

interface Success {
  readonly status: '200' | '201' | '204';
  readonly content?: Json;
}

function operation(summary: string, { status, content }: Success, extra: Json = {}): Json {
  const success = {
    description: 'Success',
    headers: requestIdHeader,
    ...(content === undefined ? {} : { content }),
  };
  return { summary, responses: { [status]: success, default: failure }, ...extra };
}

const answers = (schema: z.ZodType, status: '200' | '201' = '200'): Success => ({
  status,
  content: jsonContent(schema),
});

const chatAnswer: Success = {
  status: '200',
  content: { ...jsonContent(chatCompletionSchema), 'text/event-stream': { schema: { type: 'string' } } },
};

const body = (schema: z.ZodType): Json => ({
  requestBody: { required: true, content: { 'application/json': { schema: jsonSchema(schema) } } },
});

/** Optional fields of a chat body may be null, which is as if they were left out. */
function nullable(schema: Json): Json {
  const required = schema['required'] as readonly string[];
  const properties = Object.entries(schema['properties'] as Record<string, Json>).map(([name, property]) => [
    name,
    required.includes(name) ? property : { anyOf: [property, { type: 'null' }] },
  ]);
  return { ...schema, properties: Object.fromEntries(properties) as Json };
}

const chatBody: Json = {
  requestBody: {
    required: true,
    content: { 'application/json': { schema: nullable(jsonSchema(chatRequestSchema)) } },
  },
};

const pathParameter = (name: string): Json => ({
  name,
  in: 'path',
  required: true,
  schema: { type: 'string' },
});

/** The version of package.json, two folders above both src/http and dist/http. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return String((JSON.parse(text) as { version?: string }).version);
}

/** The OpenAPI 3.1 description, made from the schemas that validate the requests. */
export function openApiDocument(): Json {
  const headers = Object.entries(headerNames).map(([name, description]) => ({
    name,
    in: 'header',
    description,
    schema: { type: 'string' },
  }));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Model Gateway',
      version: packageVersion(),
      description: 'LLM gateway in the OpenAI Chat Completions shape, bring-your-own-key.',
    },
    security: [{ serviceKey: [] }],
    paths: {
      '/v1/users': {
        post: operation(
          'Register a user; the service key is shown once',
          answers(registeredUserSchema, '201'),
          {
            ...body(registerUserSchema),
            security: [],
          },
        ),
      },
      '/v1/keys': {
        post: operation(
          'Register a provider key',
          answers(providerKeyRecordSchema, '201'),
          body(registerKeySchema),
        ),
        get: operation('List the provider keys', answers(z.array(providerKeyRecordSchema))),
      },
      '/v1/keys/{key_id}': {
        delete: operation(
          'Delete a provider key',
          { status: '204' },
          { parameters: [pathParameter('key_id')] },
        ),
      },
      '/v1/chat/completions': {
        post: operation('Chat completion, JSON or server-sent events', chatAnswer, {
          ...chatBody,
          parameters: headers,
        }),
      },
      '/v1/logs': {
        get: operation('Request logs, newest first', answers(logPageSchema), {
          parameters: queryParameters(logsQuerySchema),
        }),
      },
      '/v1/stats': {
        get: operation('Sums over the request logs', answers(statsSchema), {
          parameters: queryParameters(statsQuerySchema),
        }),
      },
      '/v1/models': { get: operation('Modes, and override targets beside them', answers(modelListSchema)) },
      '/v1/models/{id}': {
        get: operation('One mode', answers(modelEntrySchema), { parameters: [pathParameter('id')] }),
      },
    },
    components: {
      schemas: { Error: jsonSchema(errorSchema) },
      securitySchemes: { serviceKey: { type: 'http', scheme: 'bearer' } },
    },
  };
}
