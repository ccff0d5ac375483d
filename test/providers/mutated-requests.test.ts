import fc from 'fast-check';
import { expect, test } from 'vitest';
import { GatewayError } from '../../src/core/errors.ts';
import { keepLongNumbers } from '../../src/core/json/inexact-number.ts';
import { JsonAllowance } from '../../src/core/json/json-allowance.ts';
import type { ChatRequest } from '../../src/core/request/chat-request.ts';
import { needsOf } from '../../src/core/request/request-needs.ts';
import { parseChatBody } from '../../src/http/body/chat-body.ts';
import { providers } from '../../src/providers/registry.ts';
import { testTables } from '../chat/story.ts';
import { contextFor, loadCases } from './fixtures.ts';
import { mutated, swaps } from './mutations.ts';

/** Requests as clients send them with a value of another type put anywhere: a refusal or a request, never a throw. */

const tables = testTables();
const unlimited = { values: Infinity, longDigits: Infinity, escapes: Infinity };
const requests = loadCases<{ readonly request: Record<string, unknown> }>('requests').map(({ request }) => ({
  model: 'gw/balanced',
  messages: [{ role: 'user', content: 'Hi' }],
  ...request,
}));
/** No double holds it: whoever reads it on the way writes another one. */
const long = '12345678901234567890';
const rounded = String(Number(long));

/** Reads a body as the edge does; null for one that is refused. */
function read(text: string): ChatRequest | null {
  const body: unknown = JSON.parse(text);
  if (keepLongNumbers(body, Buffer.from(text), true) !== null) return null;
  try {
    return parseChatBody(body, tables, new JsonAllowance(unlimited));
  } catch (error) {
    if (error instanceof GatewayError && error.status === 422) return null;
    throw error;
  }
}

test('they are refused, or translated for every vendor, and no number in them becomes another', () => {
  fc.assert(
    fc.property(fc.constantFrom(...requests), swaps, (given, changes) => {
      const request = read(JSON.stringify(mutated(given, changes)) ?? 'null');
      if (request === null) return;
      needsOf(request);
      for (const provider of Object.values(providers)) {
        const { body } = provider.translateRequest(request, contextFor(provider.name, {}));
        expect(body).not.toContain(rounded);
        expect(body).not.toContain('rawJSON');
        JSON.parse(body);
      }
    }),
    { numRuns: 3_000 },
  );
});
