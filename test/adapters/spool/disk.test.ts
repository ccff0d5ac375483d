import type { FileHandle } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Disk, DiskHangs, diskLimitMs } from '../../../src/adapters/spool/disk.ts';

let disk: Disk;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] });
  disk = new Disk();
});

afterEach(() => {
  vi.useRealTimers();
});

const pass = () => vi.advanceTimersByTimeAsync(diskLimitMs + 1);

test('an operation ends as it does, however close to its limit', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const done = disk.do(() => promise);
  await vi.advanceTimersByTimeAsync(diskLimitMs - 1);
  resolve('written');
  expect(await done).toBe('written');
  await expect(disk.do(() => Promise.reject(new Error('ENOSPC')))).rejects.toThrow('ENOSPC');
  await pass();
  expect(disk.hangs).toBe(false);
});

test('one that takes too long is given up, and no other is begun until all that were have ended', async () => {
  const operations = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const given = operations.map(({ promise }) => expect(disk.do(() => promise)).rejects.toThrow(DiskHangs));
  await pass();
  await Promise.all(given);
  const next = vi.fn(async () => 'read');
  for (const { resolve } of operations) {
    await expect(disk.do(next)).rejects.toThrow(DiskHangs);
    resolve();
    await vi.advanceTimersByTimeAsync(0);
  }
  expect(next).not.toHaveBeenCalled();
  expect(disk.hangs).toBe(false);
  expect(await disk.do(next)).toBe('read');
});

test('what an operation brings that was given up is told of, so that it can be closed; a failure is not', async () => {
  const late = vi.fn();
  const good = Promise.withResolvers<string>();
  const bad = Promise.withResolvers<string>();
  const given = [good, bad].map(({ promise }) =>
    expect(disk.do(() => promise, late)).rejects.toThrow(DiskHangs),
  );
  await pass();
  await Promise.all(given);
  good.resolve('a file');
  bad.reject(new Error('EIO'));
  await vi.advanceTimersByTimeAsync(0);
  expect(late.mock.calls).toEqual([['a file']]);
  expect(disk.hangs).toBe(false);
});

test('a file is closed while the disk hangs too, and nobody waits for it', async () => {
  const closing = Promise.withResolvers<void>();
  const close = vi.fn(() => closing.promise);
  const first = disk.close({ close } as unknown as FileHandle);
  await pass();
  await first;
  expect(disk.hangs).toBe(true);
  const second = disk.close({ close } as unknown as FileHandle);
  await pass();
  await second;
  expect(close).toHaveBeenCalledTimes(2);
  closing.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(disk.hangs).toBe(false);
});
