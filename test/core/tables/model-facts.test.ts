import { describe, expect, test } from 'vitest';
import type { ModelFactsRow } from '../../../src/core/tables/model-facts.ts';
import { permissiveFacts, resolveFacts } from '../../../src/core/tables/model-facts.ts';

const rows: ModelFactsRow[] = [
  { provider: 'openai', match: 'gpt-4o-mini', context_tokens: 10 },
  { provider: 'openai', match: 'gpt-4', sampling: true },
  { provider: 'openai', match: '', sampling: false, max_tokens_field: 'max_completion_tokens' },
  { provider: 'together', match: '', vision: false },
];

describe('model facts', () => {
  test('a model no row speaks about can do everything', () => {
    expect(resolveFacts(rows, 'self_hosted', 'anything')).toEqual(permissiveFacts);
  });

  test('a family row sets what a model row corrects, whatever their order', () => {
    const facts = resolveFacts(rows, 'openai', 'gpt-4o-mini-2024');
    expect(facts).toEqual({
      ...permissiveFacts,
      sampling: true,
      max_tokens_field: 'max_completion_tokens',
      context_tokens: 10,
    });
    expect(resolveFacts([...rows].reverse(), 'openai', 'gpt-4o-mini-2024')).toEqual(facts);
  });

  test('rows of other providers and models do not count', () => {
    expect(resolveFacts(rows, 'openai', 'gpt-6')).toMatchObject({ sampling: false, context_tokens: null });
    expect(resolveFacts(rows, 'together', 'gpt-4o-mini')).toEqual({ ...permissiveFacts, vision: false });
  });

  test('facts are frozen: requests share them', () => {
    expect(Object.isFrozen(resolveFacts(rows, 'openai', 'gpt-4'))).toBe(true);
  });
});
