import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HeldKey } from '../../../src/core/candidate.ts';
import { overrideKey } from '../../../src/core/override-key.ts';
import { modelEntries, overrideTargets } from '../../../src/core/tables/model-list.ts';
import { heldKey, testTables } from '../../chat/story.ts';

const tables = testTables();
const idsOf = (keys: readonly HeldKey[]) => overrideTargets(keys, tables).map(({ id }) => id);

test('the models are what can be sent as model: the three modes', () => {
  expect(modelEntries).toEqual(
    ['gw/cheap', 'gw/balanced', 'gw/premium'].map((id) => ({
      id,
      object: 'model',
      created: 0,
      owned_by: 'model-gateway',
    })),
  );
});

test('without keys there is no override target', () => {
  expect(idsOf([])).toEqual([]);
});

test('a key adds what its provider is known to offer, each model once', () => {
  const targets = overrideTargets([heldKey('openai', { createdAtMs: 1_790_000_000_999 })], tables);
  expect(targets.map(({ id }) => id)).toEqual([
    'openai:gpt-test-small',
    'openai:gpt-test',
    'openai:gpt-test-large',
  ]);
  expect(targets[0]).toEqual({
    id: 'openai:gpt-test-small',
    object: 'override_target',
    created: 1_790_000_000,
    owned_by: 'openai',
  });
});

test.each<[name: string, labels: (string | null)[], expected: string[]]>([
  ['its label, any model of it', ['demo'], ['self_hosted/demo:*']],
  ['its id where it has no label', [null], ['self_hosted/id-0:*']],
  ['its id where a later key has the same label', ['a', 'a'], ['self_hosted/id-0:*', 'self_hosted/a:*']],
  [
    'its id where its label is the id of another key',
    [null, 'id-0'],
    ['self_hosted/id-0:*', 'self_hosted/id-1:*'],
  ],
  [
    'its id where its label is that id in capitals',
    ['ID-1', null],
    ['self_hosted/id-0:*', 'self_hosted/id-1:*'],
  ],
  ['its label where that is its own id', ['id-0'], ['self_hosted/id-0:*']],
  [
    'its id where a label of old cannot be named',
    ['a/b', 'c:d', ''],
    [0, 1, 2].map((n) => `self_hosted/id-${n}:*`),
  ],
])('an own server is named by %s', (_name, labels, expected) => {
  expect(idsOf(labels.map((label, index) => heldKey('self_hosted', { id: `id-${index}`, label })))).toEqual(
    expected,
  );
});

test('every own server is named once, by what reaches it', () => {
  const label = fc.constantFrom(null, 'a', 'A', 'id-0', 'id-1', 'ID-1', 'id-2', 'a/b', ' ', '');
  fc.assert(
    fc.property(fc.array(label, { maxLength: 4 }), (labels) => {
      const keys = labels.map((given, index) => heldKey('self_hosted', { id: `id-${index}`, label: given }));
      const reached = idsOf(keys).map((target) => {
        const selector = target.slice('self_hosted/'.length, -':*'.length);
        return overrideKey({ provider: 'self_hosted', selector }, keys);
      });
      expect(reached).toEqual(keys);
    }),
  );
});
