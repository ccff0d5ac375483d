import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createSystemClock } from '../../../src/adapters/system/system-clock.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 1_790_000_000_000 });
});

afterEach(() => {
  vi.useRealTimers();
});

test('stamps within one millisecond differ, and keep their order', () => {
  const clock = createSystemClock();
  const stamps = Array.from({ length: 2500 }, () => clock.stampMicros());
  expect(stamps[0]).toBe(1_790_000_000_000_000);
  expect(stamps).toEqual(stamps.map((_stamp, index) => 1_790_000_000_000_000 + index));
});

test('stamps go on from the clock once it is ahead again', () => {
  const clock = createSystemClock();
  clock.stampMicros();
  vi.setSystemTime(1_790_000_000_005);
  expect(clock.stampMicros()).toBe(1_790_000_000_005_000);
});

test('a clock set back a little does not turn the order around', () => {
  const clock = createSystemClock();
  const before = clock.stampMicros();
  vi.setSystemTime(1_789_999_999_500);
  expect(clock.stampMicros()).toBe(before + 1);
});

test('a clock set back by more than a second is believed', () => {
  const clock = createSystemClock();
  clock.stampMicros();
  vi.setSystemTime(1_789_999_998_000);
  expect(clock.stampMicros()).toBe(1_789_999_998_000_000);
});

test('durations are not measured with the wall clock', () => {
  const clock = createSystemClock();
  const before = clock.monotonicMs();
  vi.setSystemTime(1_700_000_000_000);
  expect(clock.monotonicMs()).toBe(before);
  expect(clock.wallMs()).toBe(1_700_000_000_000);
});
