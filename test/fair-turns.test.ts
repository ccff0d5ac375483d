/** Of work that takes much memory the process does little at once, and no user keeps the others from theirs. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FairTurns } from '../src/fair-turns.ts';
import { tooManyQueries } from '../src/limits/user-turns.ts';

const maxWaitMs = 1_000;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  expect(vi.getTimerCount(), 'no timer is left').toBe(0);
  vi.useRealTimers();
});

/** Work of users that ends when it is told to, in the order in which it began. */
function crowd(most: number) {
  const turns = new FairTurns({ mostUnderWay: most, maxWaitMs, late: tooManyQueries });
  const underWay: { name: string; end: () => void; fail: () => void }[] = [];
  const begun: string[] = [];
  const ask = (name: string): Promise<string> =>
    turns.run(
      name,
      () =>
        new Promise((resolve, reject) => {
          begun.push(name);
          underWay.push({ name, end: () => resolve(name), fail: () => reject(new Error('broken')) });
        }),
    );
  const next = async (how: 'end' | 'fail' = 'end'): Promise<void> => {
    underWay.shift()?.[how]();
    await vi.advanceTimersByTimeAsync(0);
  };
  return { ask, next, begun, underWay };
}

test('so many are under way at most, and one of each user follows the other', async () => {
  const { ask, next, begun, underWay } = crowd(2);
  const all = ['hog', 'hog', 'hog', 'hog', 'hog', 'a', 'b'].map(ask);
  await vi.advanceTimersByTimeAsync(0);
  for (const _one of all) {
    expect(underWay.length).toBeLessThanOrEqual(2);
    await next();
  }
  expect(begun).toEqual(['hog', 'hog', 'hog', 'a', 'b', 'hog', 'hog']);
  expect(await Promise.all(all)).toEqual(['hog', 'hog', 'hog', 'hog', 'hog', 'a', 'b']);
});

test('work that fails gives its turn back', async () => {
  const { ask, next, begun } = crowd(1);
  const broken = expect(ask('a')).rejects.toThrow('broken');
  const other = ask('b');
  await next('fail');
  await broken;
  expect(begun).toEqual(['a', 'b']);
  await next();
  expect(await other).toBe('b');
});

test('whose turn does not come in time is asked to try again, and no turn is lost by it', async () => {
  const { ask, next, begun } = crowd(1);
  const first = ask('a');
  const late = expect(ask('b')).rejects.toMatchObject({ status: 429, code: 'too_many_queries' });
  await vi.advanceTimersByTimeAsync(maxWaitMs);
  await late;
  await next();
  await first;
  const again = ask('b');
  await next();
  expect(await again).toBe('b');
  expect(begun).toEqual(['a', 'b']);
});
