import { beforeEach, describe, expect, test, vi } from 'vitest';
import { answerBudgets } from '../../src/chat/answer-budget.ts';
import { Cancellation } from '../../src/chat/cancellation.ts';
import { HeldBytes } from '../../src/chat/held-bytes.ts';
import { checkKey } from '../../src/chat/key-check.ts';
import { CompletionAccumulator } from '../../src/core/answer/completion-accumulator.ts';
import { SseDecoder } from '../../src/core/answer/sse-decoder.ts';
import { cpuMsOf } from '../harness/measure/cpu-time.ts';
import { beginSlab, livingBytes } from '../harness/measure/memory.ts';
import { openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import { heldKey, World } from './story.ts';

/** Memory is counted in what came, however small the pieces: a Buffer of its own takes a hundred bytes and more. */

const mebibyte = 1024 * 1024;

beforeEach(() => void vi.useRealTimers());

/** How many bytes live on when `fill` is done; its result is alive until then. */
function kept(fill: () => unknown): number {
  const before = livingBytes();
  const alive = fill();
  const after = livingBytes();
  expect(alive).toBeDefined();
  return after - before;
}

test('the first bytes of many answers take no more than they are, whatever came between them', () => {
  const size = kept(() =>
    Array.from({ length: 200 }, () => {
      const decoder = new SseDecoder(mebibyte);
      for (const piece of ['data: 1\nda', 'ta: 2\n', 'data: 3']) {
        beginSlab();
        decoder.push(Buffer.from(piece));
      }
      return decoder;
    }),
  );
  expect(size).toBeLessThan(mebibyte);
});

describe('a mebibyte in pieces of one byte', () => {
  test('of a JSON answer takes no more than twice its size', () => {
    const size = kept(() => {
      const held = new HeldBytes(answerBudgets(256 * mebibyte, 1), 'u', true);
      for (let i = 0; i < mebibyte; i += 1) held.add(Buffer.from('a'));
      expect(held.length).toBe(mebibyte);
      return held;
    });
    expect(size).toBeLessThan(3 * mebibyte);
  });

  test('comes out as it went in', () => {
    const held = new HeldBytes(answerBudgets(256 * mebibyte, 1), 'u', false);
    const bytes = Buffer.from(Array.from({ length: 10_000 }, (_, i) => i % 251));
    for (let i = 0; i < bytes.length; i += 1) held.add(bytes.subarray(i, i + 1));
    expect(held.take().equals(bytes)).toBe(true);
    expect(held.length).toBe(0);
    expect(held.take()).toHaveLength(0);
    const one = Buffer.from('one');
    held.add(one);
    expect(held.take()).toBe(one);
  });

  test('of data lines in one event takes no more than a few times its size, and is refused', () => {
    const size = kept(() => {
      const decoder = new SseDecoder(mebibyte);
      const lines = Buffer.from('data:\n'.repeat(10_000));
      for (let i = 0; i < 20; i += 1) expect(decoder.push(lines)).toEqual([]);
      expect(decoder.overflowed).toBe(true);
      return decoder;
    });
    expect(size).toBeLessThan(2 * mebibyte);
  });

  test('of data lines below their limit is one event, without a buffer per line', () => {
    const decoder = new SseDecoder(mebibyte);
    const size = kept(() => {
      for (let i = 0; i < 4000; i += 1) expect(decoder.push(Buffer.from('data: a\n'))).toEqual([]);
      return decoder;
    });
    expect(size).toBeLessThan(mebibyte / 4);
    const [event] = decoder.push(Buffer.from('\n'));
    expect(event?.data.toString()).toBe(Array(4000).fill('a').join('\n'));
  });

  test('of a stream to be stored takes no more than a few times its size', () => {
    const pieces = mebibyte / 4;
    const size = kept(() => {
      const accumulator = new CompletionAccumulator(mebibyte);
      const chunk = Buffer.from(sse(openAiChunk('m', { content: 'a' })));
      for (let i = 0; i < pieces; i += 1) accumulator.push(chunk);
      return accumulator;
    });
    // A Buffer for each would be a hundred times; what was compiled meanwhile is a megabyte at times.
    expect(size).toBeLessThan(16 * pieces);
  });

  test('of half a line to be stored costs time as much as it is long', () => {
    const accumulator = new CompletionAccumulator(mebibyte);
    const tookMs = cpuMsOf(() => {
      for (let i = 0; i < mebibyte; i += 1) accumulator.push(Buffer.from('a'));
    });
    expect(tookMs).toBeLessThan(5_000);
  });
});

test('a refusal of a key in pieces of one byte takes no more than a few times its size', async () => {
  const world = new World();
  const occasion = { residency: 'global', residencyBound: null, requestId: 'check-1' } as const;
  const question = checkKey(heldKey('openai'), occasion, world.deps, new Cancellation());
  const upstream = await world.transport.call(0);
  const size = kept(() => {
    upstream.head(401);
    for (let i = 0; i < 60_000; i += 1) upstream.data('a');
    return question;
  });
  expect(size).toBeLessThan(mebibyte);
  upstream.end();
  expect(await question).toMatchObject({ status: 401, reason: 'a'.repeat(500) });
});
