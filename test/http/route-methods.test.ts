/** Which methods a path takes is what the router itself would serve, however the path is spelled. */
import { METHODS } from 'node:http';
import type { FastifyReply } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Handlers } from '../../src/http/mount.ts';
import { mountRoutes, refuseStoreRoutes } from '../../src/http/mount.ts';
import type { Route } from '../../src/http/route-table.ts';
import { routeList, routes } from '../../src/http/route-table.ts';
import type { Edge } from './edge.ts';
import { head, startEdge } from './edge.ts';

const storeless = routeList.filter(({ needsStore }) => !needsStore);

/** Handlers of these routes that answer nothing in particular. */
function handlersOf(list: readonly Route[]): Handlers {
  const named = Object.entries(routes as Readonly<Record<string, Route>>).filter(([, route]) =>
    list.includes(route),
  );
  const answer = async (_asked: unknown, reply?: FastifyReply): Promise<unknown> => reply?.send({}) ?? {};
  return Object.fromEntries(named.map(([name]) => [name, answer])) as unknown as Handlers;
}

interface Heard {
  readonly status: number;
  readonly allow: string | null;
  readonly text: string;
}

async function ask(edge: Edge, method: string, url: string): Promise<Heard> {
  const client = edge.connect(head({ connection: 'close', 'content-length': 0 }, `${method} ${url}`)).read();
  await client.closed;
  const allow = /^allow: (.*)\r$/im.exec(client.text)?.[1] ?? null;
  return { status: Number(client.text.split(' ', 2)[1]), allow, text: client.text };
}

const long = 'k'.repeat(1100);
const fitting = 'k'.repeat(1024);

describe('with a database', () => {
  let edge: Edge;
  beforeAll(async () => {
    edge = await startEdge((scope) => mountRoutes(scope, handlersOf(routeList)));
  });
  afterAll(() => edge.app.close());

  test.each([
    ['/v1/users', 'POST'],
    ['/v1/keys?x=1', 'GET, HEAD, POST'],
    ['/v1/keys/abc', 'DELETE'],
    ['/v1/keys/', 'DELETE'],
    ['/v1/keys/a%2Fb', 'DELETE'],
    ['/v1/keys/a/b', null],
    [`/v1/keys/${fitting}`, 'DELETE'],
    [`/v1/keys/${long}`, null],
    ['/v1/chat/completions', 'POST'],
    ['/v1/chat/completions/', null],
    ['/v1/logs', 'GET, HEAD'],
    ['/v1/%6Cogs', 'GET, HEAD'],
    ['/v1/logs#a', 'GET, HEAD'],
    ['/v1/logs#a?b', 'GET, HEAD'],
    ['/v1/logs?a#b', 'GET, HEAD'],
    ['/v1/logs;a', null],
    ['/v1/logs%3Fa', null],
    ['/v1/%zz', null],
    ['/V1/logs', null],
    ['//v1/logs', null],
    ['http://elsewhere/v1/logs', 'GET, HEAD'],
    ['/v1/stats?since=x', 'GET, HEAD'],
    ['/v1/models', 'GET, HEAD'],
    ['/v1/models/', 'GET, HEAD'],
    ['/v1/models/openai:a/b', 'GET, HEAD'],
    [`/v1/models/${long}`, 'GET, HEAD'],
    ['/openapi.json', 'GET, HEAD'],
    ['/openapi%2Ejson', 'GET, HEAD'],
    ['/openapi-json', null],
    ['/v1/embeddings', null],
    ['/', null],
  ])('%s takes %s, and others are 405; or 404 where it takes none', async (url, allow) => {
    const allowed = allow === null ? [] : allow.split(', ');
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE', 'PUT', 'OPTIONS', 'PROPFIND', 'QUERY']) {
      const { status, allow: said } = await ask(edge, method, url);
      if (allowed.includes(method)) expect.soft([404, 405], method).not.toContain(status);
      else expect.soft([method, status, said]).toEqual([method, allow === null ? 404 : 405, allow]);
    }
  });
});

describe('without a database', () => {
  let edge: Edge;
  beforeAll(async () => {
    edge = await startEdge((scope) => mountRoutes(scope, handlersOf(storeless)), {}, null, refuseStoreRoutes);
  });
  afterAll(() => edge.app.close());
  // Node hands CONNECT to another door.
  const methods = METHODS.filter((method) => method !== 'CONNECT');

  test.each(['/v1/users', '/v1/keys', '/v1/keys/abc', '/v1/%6Cogs', '/v1/stats?a'])(
    '%s needs one, whatever the method',
    async (url) => {
      for (const method of methods) {
        const { status, allow, text } = await ask(edge, method, url);
        expect.soft([method, status, allow]).toEqual([method, 404, null]);
        if (method !== 'HEAD') expect.soft(text, method).toContain('"not_in_profile"');
      }
    },
  );

  test('the other routes take their methods, and no others', async () => {
    for (const method of methods) {
      const { status, allow } = await ask(edge, method, '/v1/models');
      if (method !== 'GET' && method !== 'HEAD')
        expect.soft([method, status, allow]).toEqual([method, 405, 'GET, HEAD']);
      expect.soft((await ask(edge, method, '/nothing')).status, method).toBe(404);
    }
  });
});
