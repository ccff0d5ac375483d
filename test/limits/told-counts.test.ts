/** What a replica counted is told once its store can hear of it, at the latest as the replica ends. */
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import type { SharedAnswer, UserNews } from '../../src/core/limits/shared-counts.ts';
import type { Limits } from '../../src/core/limits/user-limits.ts';
import { compileDefaults } from '../../src/core/limits/user-limits.ts';
import { UserMinutes } from '../../src/limits/user-minutes.ts';

const limits = compileDefaults({ requests_per_minute: 10 }) as Limits;

beforeEach(() => void vi.useFakeTimers());

/** A replica that let three requests in while nobody could be told. */
async function startAlone() {
  const store = { isAway: true, refused: 0, told: [] as UserNews[] };
  const minutes = new UserMinutes({
    monotonicMs: () => 0,
    onDecided: () => undefined,
    store: {
      admit: async () => 'unsent',
      settle: (news) => {
        if (store.isAway) store.refused += 1;
        else store.told.push(...news);
        return !store.isAway;
      },
    },
  });
  onTestFinished(() => minutes.close());
  for (let at = 0; at < 3; at += 1) await minutes.admit('ada', limits, false);
  return { store, minutes };
}

const told = [expect.objectContaining({ userId: 'ada', requests: 3 })];

test.each([
  ['before it was tried', false],
  ['after it was tried in vain', true],
])('by a replica that ends, %s', async (_name, wasTried) => {
  const { store, minutes } = await startAlone();
  if (wasTried) vi.advanceTimersToNextTimer();
  expect(store.refused).toBe(Number(wasTried));
  store.isAway = false;
  minutes.close();
  expect(store.told).toEqual(told);
});

test('by a replica that goes on, though it was tried in vain', async () => {
  const { store } = await startAlone();
  vi.advanceTimersToNextTimer();
  expect(store.refused).toBe(1);
  store.isAway = false;
  vi.advanceTimersToNextTimer();
  expect(store.told).toEqual(told);
});

test('of a stream that is refused, when others’ news said meanwhile that it is under way', async () => {
  const streams = compileDefaults({ streams: 1 }) as Limits;
  const answer = Promise.withResolvers<SharedAnswer>();
  const told: number[] = [];
  const minutes = new UserMinutes({
    monotonicMs: () => 0,
    onDecided: () => undefined,
    store: {
      admit: () => answer.promise,
      settle: (news) => {
        for (const { streams: open } of news) if (open !== null) told.push(open);
        return true;
      },
    },
  });
  onTestFinished(() => minutes.close());
  const decided = minutes.admit('ada', streams, true);
  minutes.spend('ada', 100);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(told).toEqual([1]);
  answer.resolve({ refusedBy: 'streams', requests: 1, tokens: 0, leftMs: 1_000, otherStreams: 1 });
  expect(await decided).toHaveProperty('refusal');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(told.at(-1)).toBe(0);
});
