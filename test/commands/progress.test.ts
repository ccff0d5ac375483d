import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Progress, shareOf } from '../../src/commands/progress.ts';

let written: string[];
const out = (isTTY: boolean) => ({ isTTY, write: (text: string) => written.push(text) });

beforeEach(() => {
  written = [];
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Batches of 400 keys of 4,000, so many milliseconds apart. */
function work(isTTY: boolean, apartMs: number): void {
  const progress = new Progress('keys', out(isTTY));
  for (let batch = 1; batch <= 10; batch += 1) {
    vi.advanceTimersByTime(apartMs);
    progress.passed(400, batch / 10);
  }
  progress.end();
}

describe('of long work', () => {
  test('a line is written every ten seconds where nobody looks on', () => {
    work(false, 4_000);
    expect(written).toEqual(['30 %, 1,200 keys\n', '60 %, 2,400 keys\n', '90 %, 3,600 keys\n']);
  });

  test('a bar is drawn on a terminal, and taken away at the end', () => {
    work(true, 4_000);
    expect(written).toHaveLength(11);
    expect(written[4]).toBe('\r[###############...............]  50 %, 2,000 keys');
    expect(written.at(-1)).toBe('\r\u001b[2K');
  });
});

test.each([true, false])('short work says nothing (on a terminal: %s)', (isTTY) => {
  work(isTTY, 10);
  expect(written).toEqual([]);
});

test('a time in a period is a share of it', () => {
  expect(shareOf({ sinceMicros: 100n, untilMicros: 300n }, 150n)).toBe(0.25);
});
