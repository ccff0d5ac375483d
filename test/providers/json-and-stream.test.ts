/**
 * One verdict for one answer of the Messages API, whole or streamed: each whole answer of `answers.yaml` is streamed
 * too, with what its calls are given in pieces, and once more with it in the event that begins a call.
 */
import { describe, expect, test } from 'vitest';
import { providers } from '../../src/providers/registry.ts';
import { contextFor, loadCases } from './fixtures.ts';
import { accumulateLikePython, chunksOf, readStream } from './read-stream.ts';

type Block = Readonly<Record<string, unknown>>;

interface MessageBody {
  readonly content: readonly Block[];
  readonly stop_reason?: unknown;
  readonly usage?: unknown;
}

const cases = loadCases<{ readonly body: MessageBody }>('answers').filter(
  ({ provider, body }) => provider === 'anthropic' && Array.isArray(body?.content),
);

function pieces({ type, text, thinking, input }: Block): Record<string, unknown>[] {
  if (type === 'text') return [{ type: 'text_delta', text }];
  if (type === 'thinking') return [{ type: 'thinking_delta', thinking }];
  if (input === undefined || input === null) return [];
  const json = JSON.stringify(input);
  // The vendor's one piece of an empty input, whether there is none or it was cut.
  if (json === '{}') return [{ type: 'input_json_delta', partial_json: '' }];
  return ['', json.slice(0, 1), json.slice(1)].map((partial) => ({
    type: 'input_json_delta',
    partial_json: partial,
  }));
}

/** As the vendor begins a block that is given in pieces. */
function begun(block: Block): Block {
  if (block['type'] === 'text') return { ...block, text: '' };
  return block['type'] === 'thinking' ? { ...block, thinking: '' } : { ...block, input: {} };
}

function eventsOf(body: MessageBody, inPieces: boolean): object[] {
  const { content, stop_reason: stopReason, usage, ...head } = body;
  const blocks = content.flatMap((block, index) => [
    { type: 'content_block_start', index, content_block: inPieces ? begun(block) : block },
    ...(inPieces ? pieces(block) : []).map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]);
  return [
    { type: 'message_start', message: { ...head, content: [], usage } },
    ...blocks,
    { type: 'message_delta', delta: { stop_reason: stopReason }, usage },
    { type: 'message_stop' },
  ];
}

describe.each([
  ['in pieces', true],
  ['with whole blocks', false],
])('an answer of anthropic, streamed %s', (_form, inPieces) => {
  test.each(cases)('$name: is what it is as JSON', ({ body }) => {
    const context = contextFor('anthropic', {});
    const answer = providers.anthropic.translateAnswer(Buffer.from(JSON.stringify(body)), context);
    const stream = eventsOf(body, inPieces).map((event) => `data: ${JSON.stringify(event)}\n\n`);
    const { phase, finishReasons, output } = readStream('anthropic', context, [Buffer.from(stream.join(''))]);

    expect(phase).toBe(answer.kind === 'answer' ? 'finished' : 'failed');
    if (answer.kind !== 'answer') return;
    const [choice] = answer.completion.choices;
    expect(finishReasons).toEqual([choice?.finish_reason]);
    const message: Record<string, unknown> = {};
    for (const { choices } of chunksOf(output)) accumulateLikePython(message, choices[0]?.delta ?? {});
    const calls = (choice?.message.tool_calls ?? []).map((call, index) => ({ index, ...call }));
    expect(message['tool_calls'] ?? []).toEqual(calls);
    expect(message['content']).toBe(choice?.message.content ?? '');
    expect(message['reasoning_content']).toBe(choice?.message['reasoning_content']);
  });
});
