/** The table of routes: what is registered, refused and described follows from it. */
import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../src/core/errors.ts';
import { gatewayHeaders } from '../../src/http/gateway-headers.ts';
import type { Handlers, RouteAnswer } from '../../src/http/mount.ts';
import { mountRoutes, refuseStoreRoutes } from '../../src/http/mount.ts';
import type { Route } from '../../src/http/route-table.ts';
import { routeList, routes } from '../../src/http/route-table.ts';
import { openApiDocument } from '../../src/http/schemas/openapi.ts';

type Operation = Readonly<Record<string, unknown>> & {
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: unknown;
  readonly security?: readonly unknown[];
};
const document = openApiDocument('0.1.0') as unknown as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};
const named = Object.entries(routes) as readonly (readonly [string, Route])[];
const pathOf = ({ path, openEnd }: Route): string =>
  path.replace(/\{\w+\}/, openEnd === true ? 'a/b%2Fc' : 'abc');

const keyRecord: RouteAnswer<'addKey'> = {
  id: '00000000-0000-4000-8000-000000000000',
  provider: 'openai',
  residency: 'global',
  declared_region: null,
  base_url: null,
  label: null,
  created_at: '2026-11-20T10:00:00.000000Z',
};

describe.each(named)('%s', (_name, route) => {
  test('is described with what it takes and answers, or left out on purpose', () => {
    const operation = document.paths[route.path]?.[route.method.toLowerCase()];
    if (route.undescribed === true) return expect(operation).toBeUndefined();
    const { content } = operation?.responses[route.status] ?? {};
    const kinds = ['application/json', ...(route.story === true ? ['text/event-stream'] : [])];
    expect(Object.keys(content ?? {})).toEqual(route.answer === null ? [] : kinds);
    expect(operation?.requestBody !== undefined).toBe(route.body !== undefined);
    expect(operation?.security).toEqual(route.auth === 'registration' ? [] : undefined);
    const parameters = (place: string): number =>
      operation?.parameters?.filter((parameter) => parameter.in === place).length ?? 0;
    expect(parameters('path')).toBe(route.path.includes('{') ? 1 : 0);
    expect(parameters('query') > 0).toBe(route.query !== undefined);
    expect(parameters('header')).toBe(
      route.headers === undefined ? 0 : Object.keys(gatewayHeaders).length + 1,
    );
  });

  test('is refused by a profile without a database when it needs one, with any method', async () => {
    const app = Fastify();
    app.setErrorHandler((error, _request, reply) => {
      const { status, code } = error as GatewayError;
      return reply.code(status).send({ code });
    });
    refuseStoreRoutes(app);
    for (const method of [route.method, 'PUT', 'PROPFIND'] as const) {
      const { body } = await app.inject({ method, url: pathOf(route) });
      expect(body.includes('not_in_profile')).toBe(route.needsStore);
    }
    await app.close();
  });
});

test('the description has no operation that is not in the table', () => {
  const described = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const listed = routeList.filter(({ undescribed }) => undescribed !== true);
  expect(described.sort()).toEqual(listed.map(({ method, path }) => `${method} ${path}`).sort());
});

describe('a mounted route', () => {
  const asked: unknown[] = [];
  const handlers: Handlers<'addKey' | 'deleteKey' | 'readLogs' | 'findModel'> = {
    addKey: ({ body }) => {
      asked.push(body.provider);
      return keyRecord;
    },
    deleteKey: ({ params }) => void asked.push(params.key_id),
    readLogs: async ({ query }) => {
      asked.push(query.since, query.limit);
      return { data: [], next_cursor: null };
    },
    findModel: ({ params: { id } }) => {
      asked.push(id);
      return { id, object: 'model', created: 0, owned_by: 'x' };
    },
  };
  const inject = async (method: 'GET' | 'POST' | 'DELETE', url: string, body?: object) => {
    asked.length = 0;
    const app = Fastify();
    app.setErrorHandler((error, _request, reply) =>
      reply.code(error instanceof GatewayError ? error.status : 500).send({}),
    );
    mountRoutes(app, handlers);
    const response = await app.inject({ method, url, ...(body === undefined ? {} : { payload: body }) });
    await app.close();
    return { status: response.statusCode, text: response.body };
  };

  test('hands on its parsed body, and answers with its status', async () => {
    const sent = { provider: 'openai', api_key: 'sk-x' };
    expect(await inject('POST', '/v1/keys', sent)).toEqual({ status: 201, text: JSON.stringify(keyRecord) });
    expect(asked).toEqual(['openai']);
  });

  test('is not asked with a body or query that does not fit', async () => {
    expect((await inject('POST', '/v1/keys', { provider: 'openai' })).status).toBe(422);
    expect((await inject('GET', '/v1/logs?limit=0')).status).toBe(422);
    expect(asked).toEqual([]);
  });

  test('hands on its parsed query', async () => {
    expect((await inject('GET', '/v1/logs?since=1970-01-01T00:00:01Z&limit=7')).status).toBe(200);
    expect(asked).toEqual([1_000_000n, 7]);
  });

  test('hands on the parameter of its path, decoded, with slashes where they are allowed', async () => {
    expect((await inject('GET', '/v1/models/a/b%2Fc%20d')).status).toBe(200);
    expect(asked).toEqual(['a/b/c d']);
    expect(await inject('DELETE', '/v1/keys/a%2Fb')).toEqual({ status: 204, text: '' });
    expect(asked).toEqual(['a/b']);
  });
});

test('a handler that answers otherwise than described, or is missing, does not compile', () => {
  const wrong: Handlers<'listKeys' | 'deleteKey' | 'readLogs'> = {
    // @ts-expect-error fields are missing
    listKeys: () => [{ id: keyRecord.id }],
    // @ts-expect-error there is no body to send
    deleteKey: () => keyRecord,
    // @ts-expect-error the cursor is text
    readLogs: () => ({ data: [], next_cursor: 5 }),
  };
  // @ts-expect-error one is missing
  const missing: Handlers<'listKeys' | 'deleteKey'> = { deleteKey: () => undefined };
  expect([wrong, missing]).toHaveLength(2);
});
