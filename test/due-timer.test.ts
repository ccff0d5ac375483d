import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { DueTimer } from '../src/due-timer.ts';

describe('the due timer', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function timer() {
    const fired: number[] = [];
    const startMs = performance.now();
    const due = new DueTimer(
      () => performance.now(),
      () => fired.push(performance.now() - startMs),
    );
    return { due, fired, at: (ms: number) => due.setDue(startMs + ms) };
  }

  test('fires once, at its time', () => {
    const { fired, at } = timer();
    at(100);
    vi.advanceTimersByTime(99);
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(1000);
    expect(fired).toEqual([100]);
  });

  test('moved later, fires later', () => {
    const { fired, at } = timer();
    at(100);
    vi.advanceTimersByTime(50);
    at(200);
    at(300);
    vi.advanceTimersByTime(1000);
    expect(fired).toEqual([300]);
  });

  test('moved earlier, fires earlier', () => {
    const { fired, at } = timer();
    at(100);
    at(50);
    vi.advanceTimersByTime(1000);
    expect(fired).toEqual([50]);
  });

  test('moved later and earlier again, fires at the last time given', () => {
    const { fired, at } = timer();
    at(100);
    at(500);
    at(200);
    vi.advanceTimersByTime(1000);
    expect(fired).toEqual([200]);
  });

  test('set to a time that is past, fires at once', () => {
    const { fired, at } = timer();
    at(-5);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual([1]);
  });

  test('cleared, does not fire, and can be set again', () => {
    const { due, fired, at } = timer();
    at(100);
    due.clear();
    vi.advanceTimersByTime(150);
    at(200);
    vi.advanceTimersByTime(1000);
    expect(fired).toEqual([200]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
