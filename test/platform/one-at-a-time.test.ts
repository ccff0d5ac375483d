import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeOnce } from '../../src/dev/one-at-a-time.ts';

function place() {
  const folder = mkdtempSync(join(tmpdir(), 'make-once-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [lock, made] = [join(folder, 'lock'), join(folder, 'made')];
  let makings = 0;
  const make = async (): Promise<void> => {
    makings += 1;
    await new Promise((resolve) => setImmediate(resolve));
    writeFileSync(made, '');
  };
  return { lock, isMade: () => existsSync(made), make, makings: () => makings };
}

test('of several one makes it, the others find it made, and no lock is left', async () => {
  const { lock, isMade, make, makings } = place();
  await Promise.all(Array.from({ length: 5 }, () => makeOnce(lock, isMade, make)));
  expect([makings(), isMade(), existsSync(lock)]).toEqual([1, true, false]);
});

test('whoever failed or was killed at it holds nobody', async () => {
  const { lock, isMade, make, makings } = place();
  await expect(makeOnce(lock, isMade, () => Promise.reject(new Error('no room')))).rejects.toThrow('no room');
  writeFileSync(lock, '');
  const longAgo = new Date(Date.now() - 60_000);
  utimesSync(lock, longAgo, longAgo);
  await makeOnce(lock, isMade, make);
  expect(makings()).toBe(1);
});

test('a wait ends with its signal', async () => {
  const { lock, isMade, make } = place();
  writeFileSync(lock, '');
  await expect(makeOnce(lock, isMade, make, AbortSignal.abort())).rejects.toThrow();
  rmSync(lock);
});
