import { describe, expect, test } from 'vitest';
import { endpointsOf } from '../../src/chat/endpoints.ts';
import { providers } from '../../src/providers/registry.ts';
import { candidateOf, heldKey, testTables } from './story.ts';

describe('the address of a candidate', () => {
  const tables = testTables();
  const own = (baseUrl: string) => candidateOf('self_hosted', tables, heldKey('self_hosted', { baseUrl }));

  test('is the vendor’s own by default', () => {
    const endpointOf = endpointsOf(providers, {});
    const origins = (['openai', 'anthropic', 'together', 'sarvam'] as const).map(
      (name) => endpointOf(candidateOf(name, tables))?.origin,
    );
    expect(origins).toEqual([
      'https://api.openai.com',
      'https://api.anthropic.com',
      'https://api.together.ai',
      'https://api.sarvam.ai',
    ]);
  });

  test('is the operator’s when set, without a trailing /v1', () => {
    const endpointOf = endpointsOf(providers, { openai: 'http://proxy:8080/openai/v1/' });
    expect(endpointOf(candidateOf('openai', tables))).toEqual({
      origin: 'http://proxy:8080',
      prefix: '/openai',
    });
    expect(endpointOf(candidateOf('sarvam', tables))?.origin).toBe('https://api.sarvam.ai');
  });

  test.each([
    ['https://llm.example', '/v1'],
    ['https://llm.example/', '/v1'],
    ['https://llm.example/v1', '/v1'],
    ['https://llm.example/openai/v1/', '/openai/v1'],
    ['https://llm.example/api', '/api'],
  ])('of a user at %s has the prefix %s', (baseUrl, prefix) => {
    const endpointOf = endpointsOf(providers, { openai: 'http://proxy' });
    expect(endpointOf(own(baseUrl))).toEqual({ origin: 'https://llm.example', prefix });
  });
});
