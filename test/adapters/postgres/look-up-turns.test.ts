/** Keys that nobody knows: who sends many of them keeps neither the pool nor others from their look-ups. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { lookUpTurns } from '../../../src/adapters/postgres/look-up-turns.ts';
import { StoreAway } from '../../../src/core/store-away.ts';

/** Work that ends when it is told to, and what runs of it. */
function scripted() {
  const running = new Map<string, () => void>();
  const work = (name: string) => () =>
    new Promise<string>((resolve) => {
      running.set(name, () => {
        running.delete(name);
        resolve(name);
      });
    });
  const end = async (name: string): Promise<void> => {
    running.get(name)?.();
    await new Promise<void>((resolve) => queueMicrotask(resolve));
    await Promise.resolve();
  };
  return { running, work, end };
}

test('half of the pool is the most, and networks take turns', async () => {
  const { running, work, end } = scripted();
  const turns = lookUpTurns(5);
  const crowd = Array.from({ length: 10 }, (_, at) => turns.run('203.0.113.1', work(`crowd ${at}`)));
  const other = turns.run('198.51.100.7', work('other'));
  expect([...running.keys()]).toEqual(['crowd 0', 'crowd 1']);
  await end('crowd 0');
  expect([...running.keys()]).toEqual(['crowd 1', 'crowd 2']);
  await end('crowd 1');
  expect([...running.keys()]).toEqual(['crowd 2', 'other']);
  await end('other');
  expect(await other).toBe('other');
  for (let at = 2; at < 10; at += 1) await end(`crowd ${at}`);
  expect(await Promise.all(crowd)).toHaveLength(10);
});

test('whoever waits too long is told so, and the place goes to the next', async () => {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const { running, work, end } = scripted();
  const turns = lookUpTurns(1);
  const first = turns.run('a', work('first'));
  const late = turns.run('a', work('late'));
  const refused = expect(late).rejects.toThrow(StoreAway);
  await vi.advanceTimersByTimeAsync(900);
  await refused;
  const next = turns.run('b', work('next'));
  await end('first');
  expect([...running.keys()]).toEqual(['next']);
  await end('next');
  expect(await Promise.all([first, next])).toEqual(['first', 'next']);
});

test('what fails gives its place back', async () => {
  const turns = lookUpTurns(2);
  const fail = () => Promise.reject(new Error('away'));
  await expect(turns.run('a', fail)).rejects.toThrow('away');
  expect(await turns.run('a', () => Promise.resolve(1))).toBe(1);
});
