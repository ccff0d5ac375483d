import { expect, test } from 'vitest';
import { listModels } from '../../src/core/model-list.ts';
import { heldKey, testTables } from '../chat/story.ts';

const tables = testTables();

test('without keys, the models are the three modes', () => {
  expect(listModels([], tables)).toEqual(
    ['gw/cheap', 'gw/balanced', 'gw/premium'].map((id) => ({
      id,
      object: 'model',
      created: 0,
      owned_by: 'model-gateway',
    })),
  );
});

test('a key adds what its provider is known to offer, each model once', () => {
  const entries = listModels([heldKey('openai', { createdAtMs: 1_790_000_000_999 })], tables).slice(3);
  expect(entries.map(({ id }) => id)).toEqual([
    'openai:gpt-test-small',
    'openai:gpt-test',
    'openai:gpt-test-large',
  ]);
  expect(entries[0]).toMatchObject({ created: 1_790_000_000, owned_by: 'openai' });
});

test('a self_hosted key adds nothing: only its server knows its models', () => {
  expect(listModels([heldKey('self_hosted')], tables)).toHaveLength(3);
});
