/** Whatever header of ours an answer has, the description names it of that operation. */
import { beforeAll, expect, test } from 'vitest';
import { chatBody, chatPath } from '../harness/gateway/chat.ts';
import { setLimits } from '../harness/gateway/set-limits.ts';
import { tables } from '../harness/gateway/tables.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { respond } from '../harness/vendors/vendor-plans.ts';

/**
 * HTTP's own, whose meaning no description has to give. `Allow` comes with a 405: of methods that are not described, so
 * that there is no operation to name it of.
 */
const transportHeaders = new Set([
  ...['connection', 'date', 'keep-alive', 'transfer-encoding', 'vary'],
  ...['content-type', 'content-length', 'x-accel-buffering'],
]);

type Described = Readonly<Record<string, { readonly headers: Readonly<Record<string, unknown>> }>>;
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Described }>>>>;
}

const name = 'oldname';
const gateway = useGateway({ tables: tables({ legacy: { name, sunset: '2999-01-01T00:00:00Z' } }) });
const user = useUser(gateway);
let paths: Document['paths'];

beforeAll(async () => {
  await setLimits(gateway, user, { requests_per_minute: 1000, tokens_per_minute: 1_000_000 });
  ({ paths } = (await user.client.get('/openapi.json')).json<Document>());
});

interface Case {
  readonly what: string;
  readonly method: string;
  readonly path: string;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly sent?: Readonly<Record<string, string>>;
  readonly status: number;
  /** What the case is there for. */
  readonly has: readonly string[];
}

const always = ['x-request-id', 'x-gateway-tables-version', 'cache-control'];
const noKey = { authorization: 'Bearer nothing' } as const;
const chatting = { method: 'post', path: chatPath } as const;
const override = { 'x-gateway-override-model': 'openai:gpt-test' };

test.each<Case>([
  { ...chatting, what: 'a chat', body: chatBody(), status: 200, has: ['x-ratelimit-reset-tokens'] },
  {
    ...chatting,
    what: 'a stream',
    body: chatBody({ stream: true }),
    status: 200,
    has: ['x-ratelimit-limit-requests'],
  },
  { ...chatting, what: 'a bad body', body: {}, status: 422, has: [] },
  {
    ...chatting,
    what: 'a former name',
    body: chatBody({ model: `${name}/cheap` }),
    status: 200,
    has: ['deprecation', 'sunset'],
  },
  {
    ...chatting,
    what: "an override's error",
    body: chatBody(),
    sent: override,
    status: 429,
    has: ['retry-after', 'retry-after-ms', 'x-should-retry', 'x-content-type-options'],
  },
  { ...chatting, what: 'a wrong key', body: chatBody(), sent: noKey, status: 401, has: ['www-authenticate'] },
  {
    what: 'a registration',
    method: 'post',
    path: '/v1/users',
    body: { email: 'ann@example.com' },
    status: 201,
    has: [],
  },
  { what: 'a list of models', method: 'get', path: '/v1/models', status: 200, has: [] },
  { what: 'a page of logs', method: 'get', path: '/v1/logs', status: 200, has: [] },
  { what: 'a wrong query', method: 'get', path: '/v1/stats?since=x', status: 422, has: [] },
])('$what has no header that is not described', async ({ method, path, body, sent, status, has }) => {
  const waits = {
    'retry-after': '7',
    'retry-after-ms': '7000',
    'x-should-retry': 'true',
    'openai-version': '1',
  };
  if (sent === override) gateway.vendors.openai.script(respond(429, '{}', waits));

  const answer = await user.client.request(method.toUpperCase(), path, { body, headers: sent ?? {} });

  const { [String(answer.status)]: success, default: failure } =
    paths[path.split('?', 1)[0] as string]?.[method]?.responses ?? {};
  const described = Object.keys((success ?? failure)?.headers ?? {}).map((header) => header.toLowerCase());
  const ours = Object.keys(answer.headers).filter((header) => !transportHeaders.has(header));
  expect(answer.status, answer.text).toBe(status);
  expect(ours).toEqual(expect.arrayContaining([...always, ...has]));
  expect(ours.filter((header) => !described.includes(header))).toEqual([]);
});
