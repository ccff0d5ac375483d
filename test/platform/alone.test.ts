import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
// @ts-expect-error: what runs before anything is installed has no types
import { alone } from '../../scripts/lib/alone.mjs';

function lockFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'alone-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'lock');
}

test('one does its work after the other, and nothing is left', async () => {
  const path = lockFile();
  const done: string[] = [];
  let end = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    end = resolve;
  });
  const first = alone(path, async () => {
    await held;
    done.push('first');
    return 1;
  });
  const second = alone(path, async () => done.push('second'));
  expect(existsSync(path)).toBe(true);
  end();
  expect(await Promise.all([first, second])).toEqual([1, 2]);
  expect(done).toEqual(['first', 'second']);
  expect(existsSync(path)).toBe(false);
});

test('work that fails lets the next one in', async () => {
  const path = lockFile();
  await expect(alone(path, () => Promise.reject(new Error('no network')))).rejects.toThrow('no network');
  expect(await alone(path, async () => 'done')).toBe('done');
});

test('whoever was killed at it holds nobody', async () => {
  const path = lockFile();
  writeFileSync(path, '');
  const longAgo = new Date(Date.now() - 60_000);
  utimesSync(path, longAgo, longAgo);
  expect(await alone(path, async () => 'done')).toBe('done');
});
