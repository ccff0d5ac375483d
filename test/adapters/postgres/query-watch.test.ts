import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { QueryWatch } from '../../../src/adapters/postgres/query-watch.ts';

/** How long a query may take. */
const patienceMs = 1000;

let silences: number;
let watch: QueryWatch;

beforeEach(() => {
  vi.useFakeTimers();
  silences = 0;
  watch = new QueryWatch(patienceMs, () => {
    silences += 1;
  });
});

afterEach(() => {
  vi.useRealTimers();
});

const pass = (ms: number): void => void vi.advanceTimersByTime(ms);

test('a query that is not answered in time is told once', () => {
  watch.sent();
  pass(patienceMs - 1);
  expect(silences).toBe(0);
  pass(1);
  expect(silences).toBe(1);
  pass(10 * patienceMs);
  expect(silences).toBe(1);
});

test('each has its own time, however many were answered before, and all of them one timer', () => {
  for (let query = 0; query < 100; query += 1) {
    watch.sent();
    pass(90);
    watch.answered();
    pass(10);
    expect(vi.getTimerCount()).toBeLessThanOrEqual(1);
  }
  watch.sent();
  pass(patienceMs - 1);
  expect(silences).toBe(0);
  pass(1);
  expect(silences).toBe(1);
});

test('nothing is told, and no timer stays, while none is under way', () => {
  watch.sent();
  watch.answered();
  pass(2 * patienceMs);
  expect([silences, vi.getTimerCount()]).toEqual([0, 0]);
});

test('of several that were sent at once the next has its time from the answer before it', () => {
  watch.sent();
  watch.sent();
  pass(900);
  watch.answered();
  pass(900);
  expect(silences).toBe(0);
  pass(100);
  expect(silences).toBe(1);
});

test('one that may take longer is waited for longer, the one after it is not', () => {
  watch.sent(5 * patienceMs);
  pass(5 * patienceMs - 1);
  expect(silences).toBe(0);
  for (const answeredAfterMs of [1, 1, patienceMs]) {
    watch.answered();
    watch.sent(5 * patienceMs);
    pass(answeredAfterMs);
  }
  watch.answered();
  watch.sent();
  pass(patienceMs - 1);
  expect(silences).toBe(0);
  pass(1);
  expect(silences).toBe(1);
});

test('the greeting of a connection is the answer to no query', () => {
  watch.answered();
  watch.sent();
  pass(patienceMs);
  expect(silences).toBe(1);
});

test('a connection that ended leaves no timer', () => {
  watch.sent();
  watch.close();
  expect(vi.getTimerCount()).toBe(0);
  pass(2 * patienceMs);
  expect(silences).toBe(0);
});
