/** The official OpenAI client for Python against the gateway. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { pythonWith, runPython } from '../harness/clients/python-venv.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { skipWithout } from '../harness/stage/tools.ts';
import { answer, failure, tokensThen } from '../harness/vendors/vendor-plans.ts';
import { uuidPattern } from '../harness/vendors/wire-types.ts';

const packages = ['openai==2.54.0'];

interface Failure {
  readonly class: string;
  readonly status: number | null;
  readonly type: string | null;
  readonly code: string | null;
  readonly param: string | null;
  readonly message: string;
  readonly request_id: string | null;
}

interface Seen {
  readonly [name: string]: unknown;
  readonly blocks: unknown[];
  readonly errors: Readonly<Record<string, Failure | null>>;
}

const gateway = useGateway();
const user = useUser(gateway);

test('the Python client sees answers, streams, tools, errors and models as it expects them', async () => {
  const python = skipWithout('python3', 'the Python client runs on it');
  const toolCalls = [
    { id: 'call_a', name: 'weather', arguments: '{"city":"Pune"}' },
    { id: 'call_b', name: 'weather', arguments: '{}' },
  ];
  for (const vendor of [gateway.vendors.openai, gateway.vendors.anthropic, gateway.vendors.sarvam]) {
    vendor.when('use-tools', answer({ toolCalls }));
    vendor.when('break-off', tokensThen(2, 'fin'));
    vendor.when('too-many', failure(429, { 'retry-after': '1' }));
    vendor.when('all-down', failure(503));
  }
  const interpreter = await pythonWith(python, packages);
  const seen = await runPython<Seen>(interpreter, join(import.meta.dirname, 'python/openai_client.py'), {
    GATEWAY_URL: gateway.url,
    GATEWAY_KEY: user.key,
  });

  expect(seen).toMatchObject({
    content: 'Namaste, world.',
    total_tokens: 18,
    gateway: { provider: 'openai', mode: 'gw/balanced', cache_hit: false },
    request_id: expect.stringMatching(uuidPattern),
    header: expect.stringMatching(uuidPattern),
    streamed: 'Namaste, world.',
    streamed_usage: 18,
    assembled: 'Namaste, world.',
    assembled_provider: 'openai',
    replayed: 'Namaste, world.',
    models: ['gw/cheap', 'gw/balanced', 'gw/premium'],
    model: 'gw/balanced',
  });
  expect(seen.blocks).toHaveLength(1);
  const tools = {
    finish_reason: 'tool_calls',
    calls: toolCalls.map((call) => [call.id, call.name, JSON.parse(call.arguments) as unknown]),
  };
  expect(seen['tools_openai']).toEqual(tools);
  expect(seen['tools_anthropic']).toEqual(tools);

  expect(seen.errors).toMatchObject({
    '401': { class: 'AuthenticationError', status: 401, type: 'authentication_error' },
    '404': { class: 'NotFoundError', status: 404, type: 'not_found_error' },
    '422': {
      class: 'UnprocessableEntityError',
      status: 422,
      type: 'invalid_request_error',
      param: 'temperature',
    },
    '429': { class: 'RateLimitError', status: 429, type: 'rate_limit_error' },
    '502': { class: 'InternalServerError', status: 502, type: 'provider_error' },
    stream: { class: 'APIError', type: 'provider_error' },
  });
  for (const [name, error] of Object.entries(seen.errors)) {
    expect(error?.message, name).not.toBe('');
    if (name !== 'stream') expect(error?.request_id, name).toMatch(uuidPattern);
  }
}, 240_000);
