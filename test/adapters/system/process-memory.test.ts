/** What is known of the memory that this process holds. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  anonymousBytes,
  collectGarbage,
  ProcessMemory,
} from '../../../src/adapters/system/process-memory.ts';

test('pages of files are not counted where the system tells them apart', () => {
  const folder = mkdtempSync(join(tmpdir(), 'model-gateway-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'status');
  writeFileSync(file, 'Name:\tnode\nVmRSS:\t  204800 kB\nRssAnon:\t  102400 kB\nRssFile:\t  102400 kB\n');
  expect(anonymousBytes(file)).toBe(100 * 1024 * 1024);
  expect(anonymousBytes('/does/not/exist')).toBeGreaterThan(10 * 1024 * 1024);
});

test('is read ten times a second at most, and garbage is collected before it is too much, once in ten seconds', () => {
  let nowMs = 0;
  let held = 50;
  let collections = 0;
  const collect = () => {
    collections += 1;
    held -= 60;
  };
  const io = { monotonicMs: () => nowMs, read: () => held, collect };
  const memory = new ProcessMemory(100, io);
  expect(memory.share).toBe(0.5);
  held = 90;
  nowMs = 99;
  expect(memory.lacks(50)).toBe(false);
  nowMs = 100;
  expect(memory.share).toBe(0.9);
  expect(memory.lacks(10)).toBe(false);
  expect(collections).toBe(0);
  expect(memory.lacks(11), 'there is room once garbage is gone').toBe(false);
  expect(memory.share).toBe(0.3);
  held = 101;
  nowMs = 10_099;
  expect(memory.lacks(0)).toBe(true);
  expect(collections).toBe(1);
  nowMs = 10_100;
  expect(memory.lacks(0)).toBe(false);
  expect(collections).toBe(2);
  expect(new ProcessMemory(0, io).share).toBe(0);
  expect(new ProcessMemory(0, io).lacks(1_000)).toBe(false);
});

test('a collection that frees little is done again later each time, and one that frees much soon again', () => {
  let nowMs = 0;
  let held = 110;
  let frees = 0;
  const collectedAtMs: number[] = [];
  const collect = () => {
    collectedAtMs.push(nowMs);
    held -= frees;
  };
  const memory = new ProcessMemory(100, { monotonicMs: () => nowMs, read: () => held, collect });
  const goOnTo = (ms: number): void => {
    for (; nowMs < ms; nowMs += 1_000) memory.lacks(0);
  };
  goOnTo(100_000);
  expect(collectedAtMs).toEqual([0, 20_000, 60_000]);
  frees = 6;
  goOnTo(160_000);
  expect(collectedAtMs.slice(3)).toEqual([140_000, 150_000]);
  expect(memory.lacks(0)).toBe(false);
  held = 60;
  nowMs = 1_000_000;
  expect(memory.lacks(50), 'a body is refused without one').toBe(true);
  expect(collectedAtMs).toHaveLength(5);
});

test('what nobody needs any more is freed when it is asked for', () => {
  const garbage = new WeakRef(new Array(1_000_000).fill('x'));
  return new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
    collectGarbage();
    expect(garbage.deref()).toBeUndefined();
  });
});
