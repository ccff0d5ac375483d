/** GET /v1/models in OpenAI's shape: the modes; beside them the override targets of the caller's keys. */
import { describe, expect, test } from 'vitest';
import { chat } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerUser } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';

interface Model {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly owned_by: string;
}

const gateway = useGateway();
const user = useUser(gateway, ['openai', 'sarvam']);

const modes = ['gw/cheap', 'gw/balanced', 'gw/premium'];
const list = async (owner: User) => {
  const response = await owner.client.get('/v1/models');
  expect(response.status, response.text).toBe(200);
  return response.json<{ object: string; data: Model[]; override_targets: Model[] }>();
};

describe('GET /v1/models', () => {
  test('is a list in OpenAI’s shape of what can be sent as model', async () => {
    const body = await list(user);
    expect(body.object).toBe('list');
    expect(body.data.map((model) => model.id)).toEqual(modes);
    for (const model of body.data) {
      expect(model).toMatchObject({ id: expect.any(String), object: 'model', owned_by: expect.any(String) });
      expect(Number.isInteger(model.created)).toBe(true);
    }
  });

  test('holds nothing that a chat request refuses as its model', async () => {
    for (const { id } of (await list(user)).data)
      expect((await chat(user.client, { model: id })).status).toBe(200);
  });

  test('has the override targets of the caller’s keys beside it, and only those', async () => {
    const targets = (await list(user)).override_targets.map(({ id }) => id);
    expect(targets).toContain('openai:gpt-test');
    expect(targets).toContain('sarvam:sarvam-test');
    expect(targets.every((id) => id.startsWith('openai:') || id.startsWith('sarvam:'))).toBe(true);
    expect(new Set(targets).size).toBe(targets.length);
    for (const target of targets) {
      const response = await chat(user.client, {}, { 'x-gateway-override-model': target });
      expect(response.status, target).toBe(200);
    }
  });

  test('is the three modes for a user without keys', async () => {
    const nobody = await registerUser(gateway.url);
    expect((await list(nobody)).data.map((model) => model.id)).toEqual(modes);
  });

  test('needs a service key', async () => {
    for (const path of ['/v1/models', '/v1/models/gw%2Fbalanced'])
      expectError(await httpClient(gateway.url).get(path), { status: 401, type: 'authentication_error' });
  });
});

describe('GET /v1/models/{id}', () => {
  test.each(['gw%2Fbalanced', 'gw/balanced', 'gw%2Fcheap', 'gw%2Fpremium'])('finds %s', async (id) => {
    const response = await user.client.get(`/v1/models/${id}`);
    expect(response.status, response.text).toBe(200);
    expect(response.json<Model>()).toMatchObject({ id: decodeURIComponent(id), object: 'model' });
  });

  test.each([
    'gw%2Ffast',
    'gpt-test',
    'openai:gpt-test',
    'anthropic%3Aclaude-test',
    'x',
    '%00',
    'a'.repeat(2000),
  ])('answers 404 for %s', async (id) => {
    expectError(await user.client.get(`/v1/models/${id}`), { status: 404, type: 'not_found_error' });
  });
});
