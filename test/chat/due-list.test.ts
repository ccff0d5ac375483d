import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { DueEntry } from '../../src/chat/due-list.ts';
import { DueList } from '../../src/chat/due-list.ts';

class Waiter implements DueEntry {
  place = -1;
  readonly calledAtMs: number[] = [];
  dueMs: number;
  readonly #dues: DueList;
  readonly #act: () => void;

  constructor(dues: DueList, dueMs: number, act: () => void = () => dues.leave(this)) {
    this.#dues = dues;
    this.dueMs = dueMs;
    this.#act = act;
  }

  wait(dueMs = this.dueMs): this {
    this.dueMs = dueMs;
    this.#dues.wait(this);
    return this;
  }

  onDue(nowMs: number): void {
    this.calledAtMs.push(nowMs);
    this.#act();
  }
}

let dues: DueList;

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
  dues = new DueList(() => Date.now());
});

afterEach(() => {
  expect(vi.getTimerCount(), 'no timer is left').toBe(0);
  vi.useRealTimers();
});

test('each is called when its time is up, whatever the order in which they came, by one timer', () => {
  const waiters = [50, 10, 30, 30.5].map((dueMs) => new Waiter(dues, dueMs).wait());
  expect(vi.getTimerCount()).toBe(1);
  vi.runAllTimers();
  expect(waiters.map(({ calledAtMs }) => calledAtMs)).toEqual([[50], [10], [30], [31]]);
});

test('one that leaves is not called, and the timer that finds nobody comes to its end', () => {
  const first = new Waiter(dues, 10).wait();
  const second = new Waiter(dues, 20).wait();
  dues.leave(first);
  vi.advanceTimersByTime(15);
  expect(vi.getTimerCount()).toBe(1);
  dues.leave(second);
  dues.leave(second);
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(100);
  expect([...first.calledAtMs, ...second.calledAtMs]).toEqual([]);
});

test('its timer keeps no process alive, and its length is how many wait', () => {
  const set = vi.spyOn(globalThis, 'setTimeout');
  const only = new Waiter(dues, 10).wait();
  const timer = set.mock.results[0]?.value as NodeJS.Timeout | undefined;
  expect(timer?.hasRef()).toBe(false);
  expect(dues.length).toBe(1);
  const later = new Waiter(dues, 30).wait().wait(40);
  expect(dues.length).toBe(2);
  dues.leave(only);
  dues.leave(only);
  expect(dues.length).toBe(1);
  vi.runAllTimers();
  expect(later.calledAtMs).toEqual([40]);
  expect(dues.length).toBe(0);
});

test('a time that moves later is heeded, and one that moves earlier', () => {
  const later = new Waiter(dues, 10).wait().wait(40);
  const earlier = new Waiter(dues, 100).wait().wait(20);
  vi.runAllTimers();
  expect([later.calledAtMs, earlier.calledAtMs]).toEqual([[40], [20]]);
});

test('one that waits again when it is called is called again', () => {
  const again: Waiter = new Waiter(dues, 10, () =>
    again.calledAtMs.length < 3 ? void again.wait(again.dueMs + 10) : dues.leave(again),
  );
  again.wait();
  vi.runAllTimers();
  expect(again.calledAtMs).toEqual([10, 20, 30]);
});

test('one that another makes leave is not called, and one that comes meanwhile is called in its time', () => {
  const late = new Waiter(dues, 25);
  const ends: Waiter = new Waiter(dues, 10, () => {
    dues.leave(ends);
    dues.leave(ended);
    late.wait();
  });
  const ended = new Waiter(dues, 10);
  ends.wait();
  ended.wait();
  vi.runAllTimers();
  expect([ended.calledAtMs, late.calledAtMs]).toEqual([[], [25]]);
});

test('what one throws keeps none of the others from being called', () => {
  const bad: Waiter = new Waiter(dues, 10, () => {
    dues.leave(bad);
    throw new Error('a bug');
  });
  bad.wait();
  const others = [10, 20].map((dueMs) => new Waiter(dues, dueMs).wait());
  expect(() => vi.advanceTimersByTime(10)).toThrow('a bug');
  vi.runAllTimers();
  expect(others.map(({ calledAtMs }) => calledAtMs.length)).toEqual([1, 1]);
});
