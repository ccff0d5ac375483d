import { expect, vi } from 'vitest';
import type { DueEntry } from '../../src/chat/due-list.ts';
import { DueList } from '../../src/chat/due-list.ts';

/** Made since it was last looked. */
const watched: DueList[] = [];

/** As in the product, by the timers of the test; `expectNobodyWaits` looks at it. */
export function watchedDues(): DueList {
  const dues = new DueList(() => performance.now());
  if (vi.isFakeTimers()) watched.push(dues);
  return dues;
}

/** The timer of a list is not put off for those who leave: this has it fire now, and come to its end or go on. */
function fireNow(dues: DueList): void {
  const looker: DueEntry = { place: -1, dueMs: performance.now(), onDue: () => dues.leave(looker) };
  dues.wait(looker);
  vi.advanceTimersByTime(1);
}

/** No exchange of any world is left, and no timer of anybody else. */
export function expectNobodyWaits(): void {
  for (const dues of watched.splice(0)) {
    expect(dues.length, 'exchanges that are left').toBe(0);
    fireNow(dues);
  }
  expect(vi.getTimerCount(), 'timers that are left').toBe(0);
}
