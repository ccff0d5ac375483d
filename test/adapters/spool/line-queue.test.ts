import { beforeEach, expect, test } from 'vitest';
import { LineQueue } from '../../../src/adapters/spool/line-queue.ts';

/** Writes under way, each to be ended by the test. */
let writes: { readonly lines: readonly string[]; end(kept: number): void; fail(): void }[];
let trial: () => Promise<void>;
let queue: LineQueue;

beforeEach(() => {
  writes = [];
  trial = () => Promise.resolve();
  queue = new LineQueue({
    write: (lines) =>
      new Promise((resolve, reject) => {
        writes.push({ lines, end: resolve, fail: () => reject(new Error('ENOSPC')) });
      }),
    trial: () => trial(),
  });
});

/** The write that was begun last. */
const latest = () => writes.at(-1) as (typeof writes)[number];

async function failOne(): Promise<void> {
  const failed = queue.add('refused');
  latest().fail();
  expect(await failed).toBe(false);
}

test('lines that come during a write are the next one, in their order', async () => {
  const first = queue.add('1');
  const others = [queue.add('2'), queue.add('3')];
  latest().end(1);
  expect(await first).toBe(true);
  expect(writes.map(({ lines }) => lines)).toEqual([['1'], ['2', '3']]);
  latest().end(1);
  expect(await Promise.all(others)).toEqual([true, false]);
  expect(queue.refusal).toBeNull();
});

test('a write that fails refuses its lines; the next one is tried', async () => {
  await failOne();
  expect(queue.refusal).toBe('ENOSPC');
  const next = queue.add('1');
  latest().end(1);
  expect(await next).toBe(true);
  expect(queue.refusal).toBeNull();
});

test('where one write follows the other, who waits for a moment between two has it behind the first', async () => {
  const first = queue.add('1');
  const between = queue.between(() => writes.length);
  const second = queue.add('2');
  latest().end(1);
  expect(await first).toBe(true);
  // Before the second was begun.
  expect(await between).toBe(1);
  expect(writes).toHaveLength(2);
  // And while it is under way nobody tries the disk, nor waits for the end of all.
  trial = () => expect.unreachable();
  await queue.retry();
  latest().end(1);
  expect(await second).toBe(true);
});

test('without a write under way it is that moment', async () => {
  let isDone = false;
  const between = queue.between(() => {
    isDone = true;
  });
  expect(isDone).toBe(true);
  await between;
});

test('a trial that is taken ends the refusing, one that fails does not; lines wait for either', async () => {
  await failOne();
  trial = () => Promise.reject(new Error('ENOSPC'));
  await queue.retry();
  expect(queue.refusal).toBe('ENOSPC');
  const tried = Promise.withResolvers<void>();
  trial = () => tried.promise;
  const retried = queue.retry();
  const line = queue.add('1');
  expect(writes).toHaveLength(1);
  tried.resolve();
  await retried;
  expect(queue.refusal).toBeNull();
  await expect.poll(() => writes).toHaveLength(2);
  latest().end(1);
  expect(await line).toBe(true);
});
