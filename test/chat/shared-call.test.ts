/** Equal cached requests that wait for the call of one of them: how long. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { CacheLookup } from '../../src/chat/answer-cache.ts';
import { AnswerCache } from '../../src/chat/answer-cache.ts';
import { LaterTurns } from '../../src/chat/later-turn.ts';
import { callOf, candidateOf, FakeStore, storedText } from './story.ts';

/** A clock apart from the timers: what counts is what it says. */
let nowMs = 0;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  nowMs = 0;
});

afterEach(() => {
  expect(vi.getTimerCount(), 'no timer is left').toBe(0);
  vi.useRealTimers();
});

const open = new AbortController().signal;

async function join(cache: AnswerCache, timeoutMs: number): Promise<CacheLookup | null> {
  const call = callOf({ options: { cacheTtlSeconds: 60, timeoutMs } });
  return cache.join(call, [candidateOf('openai', call.tables)], 60, open);
}

test('each waits as long as an attempt of its own may take, by the clock, and goes on alone', async () => {
  const cache = new AnswerCache(
    new FakeStore(),
    () => nowMs,
    new LaterTurns(),
    () => expect.unreachable(),
  );
  const leader = await join(cache, 60_000);
  let waits = true;
  const follower = join(cache, 5_000).finally(() => {
    waits = false;
  });
  await vi.advanceTimersByTimeAsync(0);
  // The machine's timers ran ahead of the clock.
  nowMs = 3_000;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(waits).toBe(true);
  nowMs = 5_000;
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await follower).toMatchObject({ kind: 'miss' });
  if (leader?.kind === 'miss') leader.resolve(null);
});

test('an answer that cannot be kept is a bug of ours, and goes to all who wait for it', async () => {
  const bugs: unknown[] = [];
  const broken = Object.assign(new FakeStore(), { set: () => Promise.reject(new Error('broken')) });
  const cache = new AnswerCache(
    broken,
    () => nowMs,
    new LaterTurns(),
    (bug) => void bugs.push(bug),
  );
  const leader = await join(cache, 60_000);
  const follower = join(cache, 60_000);
  if (leader?.kind === 'miss') leader.resolve(storedText('{"id":"x"}'));
  expect(await follower).toMatchObject({ kind: 'hit' });
  expect(bugs).toEqual([new Error('broken')]);
});
