import { expect, test } from 'vitest';
import type { KeyRefusal } from '../../../src/adapters/postgres/provider-keys.ts';
import { keyRefused } from '../../../src/http/routes/keys.ts';

test.each<[KeyRefusal, number, string, string, string]>([
  [
    { kind: 'taken' },
    409,
    'already_exists',
    'provider',
    'A key for openai is already registered; delete it first.',
  ],
  [
    { kind: 'too-many-keys', most: 100 },
    422,
    'too_many_keys',
    'provider',
    'At most 100 self_hosted keys can be registered; delete one first.',
  ],
  [
    { kind: 'too-many-bytes', most: 5 },
    422,
    'too_many_key_bytes',
    'api_key',
    'All provider keys of a user may take 5 bytes together; delete one first.',
  ],
])('a key that is refused as $kind', (refusal, status, code, param, message) => {
  const provider = refusal.kind === 'too-many-keys' ? 'self_hosted' : 'openai';
  expect(keyRefused(refusal, provider)).toMatchObject({ status, code, param, message });
});
