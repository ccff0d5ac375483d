import fc from 'fast-check';
import { expect, test } from 'vitest';
import { chatRequestSchema } from '../../../src/core/request/chat-request.ts';
import { isPlainRequest } from '../../../src/core/request/plain-request.ts';

const message = { role: 'user', content: 'hello' };
const plain = { model: 'gw/balanced', messages: [message] };

test.each([
  plain,
  { ...plain, stream: true, stream_options: { include_usage: true } },
  { ...plain, messages: [message, { role: 'assistant', content: '' }], max_tokens: 5, temperature: 2 },
])('a plain body is known without the schema: %j', (body) => {
  expect(isPlainRequest(body)).toBe(true);
});

/** Values at both sides of every rule, for any field. */
const values: readonly unknown[] = [
  ...['', 'm', 'm'.repeat(256), 'm'.repeat(257), 'u'.repeat(1024), 'u'.repeat(1025)],
  ...[true, false, null, -0.1, 0, 0.5, 1, 1.1, 2, 2.1, 1.5, 2 ** 53, 2 ** 53 - 1, -1],
  ...[
    [],
    {},
    [message],
    [message, { role: 'assistant', content: null }],
    [{ role: 'developer', content: '' }],
  ],
  ...[
    [{ role: 'user', content: [{ type: 'text', text: 'a' }] }],
    [{ ...message, name: 'n' }],
    [{ role: 'user' }],
  ],
  ...[[[]], [null], ['m'], [{ content: 'a' }], [message, { role: 'constructor', content: '' }]],
  ...[
    { include_usage: true },
    { include_usage: null },
    { include_usage: 1 },
    { include_usage: true, more: 1 },
  ],
];
const names = [...Object.keys(chatRequestSchema.shape), 'unknown', 'toString', 'constructor'];

test('what is called plain the schema takes and hands back as it is', () => {
  const anyField = fc.record({ name: fc.constantFrom(...names), value: fc.constantFrom(...values) });
  let seen = 0;
  fc.assert(
    fc.property(fc.array(anyField, { maxLength: 4 }), fc.boolean(), (fields, complete) => {
      const body: Record<string, unknown> = complete ? { ...plain } : {};
      for (const { name, value } of fields) body[name] = value;
      if (!isPlainRequest(body)) return;
      seen += 1;
      expect(chatRequestSchema.parse(body)).toEqual(body);
    }),
    { numRuns: 5_000 },
  );
  expect(seen).toBeGreaterThan(100);
});
