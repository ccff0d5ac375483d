import { ReadableStream } from 'node:stream/web';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import { describe, expect, test } from 'vitest';
import type { ToolCall } from '../../src/core/answer/chat-completion.ts';
import type { Usage } from '../../src/core/answer/usage.ts';
import { noUsage } from '../../src/core/answer/usage.ts';
import { Random } from '../harness/measure/random.ts';
import type { ContextOptions } from './fixtures.ts';
import { contextFor, loadCases } from './fixtures.ts';
import type { Chunk, StreamResult } from './read-stream.ts';
import { accumulateLikePython, chunksOf, cutAt, readStream } from './read-stream.ts';

interface ExpectedCall {
  readonly id?: string;
  readonly name: string;
  readonly arguments: string;
  readonly extra?: Record<string, unknown>;
}

interface StreamCase extends ContextOptions {
  /** Data of the events: objects, or text such as `[DONE]`. */
  readonly events?: readonly unknown[];
  /** Data of the events as the Messages API frames them: `event:` names the type. */
  readonly typed?: readonly { readonly type: string }[];
  /** The body as it comes; before `events` when both are given. */
  readonly raw?: string;
  /** Part of the output that must be there as it came. */
  readonly passes?: readonly string[];
  readonly role?: string;
  readonly content?: string;
  readonly reasoning?: string;
  readonly tools?: readonly ExpectedCall[];
  readonly finish?: string | null;
  readonly phase?: 'finished' | 'failed';
  readonly token?: boolean;
  readonly failure?: string;
  readonly failure_message?: string;
  readonly usage?: Partial<Usage>;
  readonly wire?: unknown;
  readonly head?: { readonly id?: string; readonly created?: number; readonly model?: string };
  /** Number of chunks that go out. */
  readonly chunks?: number;
}

function bodyOf(given: StreamCase): Buffer {
  const plain = (given.events ?? []).map(
    (event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`,
  );
  const typed = (given.typed ?? []).map(
    (event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
  );
  return Buffer.from((given.raw ?? '') + plain.join('') + typed.join(''));
}

function joinDeltas(chunks: readonly Chunk[], choiceIndex: number): Record<string, unknown> {
  const message: Record<string, unknown> = {};
  for (const chunk of chunks) {
    for (const choice of chunk.choices) {
      if (choice.index === choiceIndex) accumulateLikePython(message, choice.delta);
    }
  }
  return message;
}

function checkShape(chunks: readonly Chunk[]): void {
  for (const chunk of chunks) {
    expect(chunk.choices.length).toBeGreaterThan(0);
    expect(chunk['object']).toBe('chat.completion.chunk');
    expect(chunk['id']).not.toBe('');
    expect(chunk['usage'] ?? null).toBeNull();
    expect(JSON.stringify(chunk)).not.toContain('"gateway"');
  }
}

/** Some clients refuse a fragment of a call that they have not seen begin. */
function checkOpenings(chunks: readonly Chunk[]): void {
  const open = new Set<string>();
  for (const choice of chunks.flatMap(({ choices }) => choices)) {
    for (const call of (choice.delta['tool_calls'] ?? []) as readonly Partial<
      ToolCall & { index: number }
    >[]) {
      const place = `${choice.index}/${call.index}`;
      if (!open.has(place)) expect(call).toMatchObject({ id: expect.any(String), type: expect.any(String) });
      open.add(place);
    }
  }
}

function expectedCalls(given: StreamCase): unknown {
  return (given.tools ?? []).map((call, index) => ({
    index,
    id: call.id ?? expect.stringMatching(/^[A-Za-z0-9_-]{1,40}$/),
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
    ...call.extra,
  }));
}

function check(given: StreamCase, result: StreamResult): void {
  const chunks = chunksOf(result.output);
  checkShape(chunks);
  checkOpenings(chunks);
  const phase = given.phase ?? 'finished';
  expect(result.phase).toBe(phase);
  expect(result.failure?.code ?? null).toBe(given.failure ?? null);
  expect(result.failure?.message ?? '').toContain(given.failure_message ?? '');
  expect(result.tokenSeen).toBe(given.token ?? phase === 'finished');
  const message = joinDeltas(chunks, 0);
  expect(message['content'] ?? '').toBe(given.content ?? '');
  expect(message['reasoning_content'] ?? message['reasoning'] ?? '').toBe(given.reasoning ?? '');
  expect(message['tool_calls'] ?? []).toEqual(expectedCalls(given));
  if (chunks.length > 0) expect(message['role']).toBe('assistant');
  const finish = given.finish === undefined ? (phase === 'finished' ? 'stop' : null) : given.finish;
  const ended = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.finish_reason);
  const first = ended.filter(({ index }) => index === 0).map((choice) => choice.finish_reason);
  expect(first).toEqual(finish === null ? [] : [finish]);
  // What the client was told of all choices is what the attempt says of them.
  const byIndex = ended.toSorted((one, other) => one.index - other.index);
  expect(result.finishReasons).toEqual(byIndex.map((choice) => choice.finish_reason));
  for (const text of given.passes ?? [])
    expect(result.output).toContain(Buffer.from(text).toString('latin1'));
  if (given.usage !== undefined) expect(result.usage).toEqual({ ...noUsage, ...given.usage });
  if (given.wire !== undefined) expect(result.wireUsage).toEqual(given.wire);
  if (given.head !== undefined) expect(result.head).toMatchObject(given.head);
  if (given.chunks !== undefined) expect(chunks.length).toBe(given.chunks);
}

const cases = loadCases<StreamCase>('streams');

describe('streams', () => {
  test.each(cases)('$provider: $name', (given) => {
    const result = readStream(given.provider, contextFor(given.provider, given), [bodyOf(given)]);
    check(given, result);
  });

  test.each(cases)('$provider: $name, cut anywhere, reads the same', (given) => {
    const body = bodyOf(given);
    const context = contextFor(given.provider, given);
    const whole = readStream(given.provider, context, [body]);
    const bytes = [...body.keys()];
    expect(readStream(given.provider, context, cutAt(body, bytes))).toEqual(whole);
    const eventEnds = [...body.toString('latin1').matchAll(/\n\n/g)].map((match) => match.index + 2);
    expect(readStream(given.provider, context, cutAt(body, eventEnds))).toEqual(whole);
    const random = new Random(body.length);
    for (let round = 0; round < 30; round += 1) {
      const cuts = Array.from({ length: random.int(1, 8) }, () => random.below(body.length));
      expect(readStream(given.provider, context, cutAt(body, cuts)), `cuts ${cuts}`).toEqual(whole);
    }
  });

  const finished = cases.filter((given) => (given.phase ?? 'finished') === 'finished');
  test.each(finished)('$provider: $name, is rebuilt by the OpenAI SDK', async (given) => {
    const result = readStream(given.provider, contextFor(given.provider, given), [bodyOf(given)]);
    const lines = chunksOf(result.output).map((chunk) => `${JSON.stringify(chunk)}\n`);
    const source = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const line of lines) controller.enqueue(Buffer.from(line));
        controller.close();
      },
    });
    const completion = await ChatCompletionStream.fromReadableStream(
      source as unknown as Parameters<typeof ChatCompletionStream.fromReadableStream>[0],
    ).finalChatCompletion();
    const [choice] = completion.choices;
    expect(choice?.message.content ?? '').toBe(given.content ?? '');
    const calls = choice?.message.tool_calls ?? [];
    expect(calls.map((call) => (call.type === 'function' ? call.function : null))).toEqual(
      (given.tools ?? []).map((call) =>
        expect.objectContaining({ name: call.name, arguments: call.arguments }),
      ),
    );
    // Of another end a call may have been cut.
    if (given.finish !== 'tool_calls') return;
    for (const call of given.tools ?? []) expect(() => JSON.parse(call.arguments)).not.toThrow();
  });
});
