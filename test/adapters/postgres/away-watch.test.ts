import { expect, onTestFinished, test } from 'vitest';
import { AwayWatch } from '../../../src/adapters/postgres/away-watch.ts';
import { StoreAway } from '../../../src/core/store-away.ts';

function watched() {
  const reads: PromiseWithResolvers<void>[] = [];
  const watch = new AwayWatch();
  onTestFinished(() => watch.close());
  const read = () => {
    const reading = Promise.withResolvers<void>();
    reads.push(reading);
    return reading.promise;
  };
  const untilRead = (count: number) => expect.poll(() => reads.length, { interval: 5 }).toBe(count);
  return { watch, read, reads, untilRead };
}

test('a store that answers nobody is asked again and again, by one at a time, until it does', async () => {
  const { watch, read, reads, untilRead } = watched();
  watch.began(read);
  watch.began(read);
  await untilRead(1);
  reads[0]?.reject(new StoreAway('silent', false));
  await untilRead(2);
  expect(watch.isAway).toBe(true);
  reads[1]?.reject(new Error('no such column'));
  await expect.poll(() => watch.isAway, { interval: 5 }).toBe(false);
});

test.each([0, 1, 2, 3, 4, 5, 6, 7, 8])(
  'a store that is lost again %i steps behind the look that found it is looked for again',
  async (steps) => {
    const { watch, read, reads, untilRead } = watched();
    watch.began(read);
    await untilRead(1);
    reads[0]?.resolve();
    for (let step = 0; step < steps; step += 1) await Promise.resolve();
    watch.began(read);
    // Either the look that was under way has found it, or another one begins.
    await expect.poll(() => !watch.isAway || reads.length === 2, { interval: 5 }).toBe(true);
    reads[1]?.resolve();
    await expect.poll(() => watch.isAway, { interval: 5 }).toBe(false);
  },
);
