import { describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../src/core/request/chat-request.ts';
import { chatRequestSchema } from '../../src/core/request/chat-request.ts';
import { needsOf } from '../../src/core/request/request-needs.ts';
import { providers } from '../../src/providers/registry.ts';
import { contextFor } from './fixtures.ts';

const text = (said: string): object => ({ type: 'text', text: said });

/** All that may stand at the end of a conversation. */
const ends: readonly object[] = [
  { role: 'assistant', content: 'Once' },
  { role: 'assistant', content: [text(''), text('Once')] },
  { role: 'assistant', content: null, refusal: 'No' },
  { role: 'assistant', content: [{ type: 'refusal', refusal: 'No' }] },
  { role: 'assistant', content: '' },
  { role: 'assistant', content: null, tool_calls: [] },
  { role: 'assistant', content: [text(' '), { type: 'refusal', refusal: '' }] },
  { role: 'user', content: 'Go on' },
  { role: 'user', content: '' },
  { role: 'user', content: [text(''), text(' \n')] },
  { role: 'user', content: [] },
  { role: 'system', content: 'Be short' },
  { role: 'system', content: '' },
  { role: 'tool', tool_call_id: 'c', content: '' },
];
const cases = ends.flatMap((first) => ends.flatMap((second) => ends.map((third) => [first, second, third])));

interface SentTurn {
  readonly role: string;
}

describe('a conversation is continued from the words of the assistant', () => {
  test(`where it ends with them, and only then (${cases.length} ends)`, () => {
    const context = contextFor('anthropic', { model: 'claude-haiku-4-5' });
    const wrong = cases.filter((end) => {
      const messages = [{ role: 'user', content: 'Hi' }, ...end];
      const request = chatRequestSchema.parse({ model: 'gw/cheap', messages }) as ChatRequest;
      const { body } = providers.anthropic.translateRequest(request, context);
      const { messages: turns } = JSON.parse(body) as { readonly messages: readonly SentTurn[] };
      const isContinued = turns.at(-1)?.role === 'assistant';
      return isContinued !== needsOf(request).features.some(({ feature }) => feature === 'prefill');
    });
    expect(wrong.map((end) => JSON.stringify(end))).toEqual([]);
  });
});
