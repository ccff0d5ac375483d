import { expect, test } from 'vitest';
import { BulkBytes } from '../../../src/adapters/redis/bulk-bytes.ts';

const mebibyte = 1024 * 1024;

/** Work that ends when it is told to. */
function held() {
  let end = (): void => undefined;
  const done = new Promise<string>((resolve) => {
    end = () => resolve('moved');
  });
  return { work: () => done, end: () => end() };
}
const atOnce = () => Promise.resolve('moved');

test('one user has half of the room, all together have the whole, and what ends makes room', async () => {
  const bytes = new BulkBytes();
  const [eve, ann] = [held(), held()];
  const moving = [bytes.move('eve', 2 * mebibyte, eve.work), bytes.move('ann', 1.5 * mebibyte, ann.work)];
  expect(await bytes.move('eve', 1, atOnce)).toBeNull();
  expect(await bytes.move('bob', mebibyte, atOnce)).toBeNull();
  expect(await bytes.move('bob', mebibyte / 2, atOnce)).toBe('moved');
  eve.end();
  expect(await moving[0]).toBe('moved');
  expect(await bytes.move('bob', mebibyte, atOnce)).toBe('moved');
  ann.end();
  await moving[1];
});

test('a value of any size goes alone, and one that fails leaves nothing behind', async () => {
  const bytes = new BulkBytes();
  expect(await bytes.move('eve', 100 * mebibyte, atOnce)).toBe('moved');
  await expect(bytes.move('eve', 2 * mebibyte, () => Promise.reject(new Error('lost')))).rejects.toThrow(
    'lost',
  );
  expect(await bytes.move('ann', 100 * mebibyte, atOnce)).toBe('moved');
});
