import { expect, test } from 'vitest';
import type { Era } from '../../../src/adapters/redis/circuit-breaker.ts';
import { CircuitBreaker } from '../../../src/adapters/redis/circuit-breaker.ts';

/** A call that the breaker lets through. */
function begin(breaker: CircuitBreaker, nowMs: number): Era {
  const era = breaker.begin(nowMs);
  expect(era).not.toBeNull();
  return era as Era;
}

function fail(breaker: CircuitBreaker, count: number): void {
  for (let n = 0; n < count; n += 1) breaker.failed(begin(breaker, 0), 0);
}

function broken(): CircuitBreaker {
  const breaker = new CircuitBreaker();
  fail(breaker, 5);
  return breaker;
}

test('stays closed until the fifth failure in a row', () => {
  const breaker = new CircuitBreaker();
  fail(breaker, 4);
  breaker.succeeded(begin(breaker, 0));
  fail(breaker, 4);
  expect(breaker.state).toBe('closed');
  fail(breaker, 1);
  expect(breaker.state).toBe('open');
});

test('lets nobody through for a second, then one at a time', () => {
  const breaker = broken();
  expect(breaker.begin(999)).toBeNull();
  const probe = begin(breaker, 1000);
  expect(breaker.state).toBe('half_open');
  expect(breaker.begin(1000)).toBeNull();
  breaker.failed(probe, 1040);
  expect(breaker.begin(2039)).toBeNull();
  begin(breaker, 2040);
});

test('closes with the first success', () => {
  const breaker = broken();
  breaker.succeeded(begin(breaker, 1000));
  expect(breaker.state).toBe('closed');
  begin(breaker, 1000);
  begin(breaker, 1000);
});

test('closes when the server is known to be there by something else', () => {
  const breaker = broken();
  breaker.close();
  expect(breaker.state).toBe('closed');
});

test.each<[string, (breaker: CircuitBreaker, early: Era) => void]>([
  ['succeeded', (breaker, early) => breaker.succeeded(early)],
  ['failed', (breaker, early) => breaker.failed(early, 1_001)],
])('a call from before the pause moves nothing when it has %s: open, half open and after it', (_, end) => {
  const breaker = new CircuitBreaker();
  const early = begin(breaker, 0);
  fail(breaker, 5);
  end(breaker, early);
  expect(breaker.state).toBe('open');
  const probe = begin(breaker, 1000);
  end(breaker, early);
  expect(breaker.state).toBe('half_open');
  breaker.succeeded(probe);
  for (let n = 0; n < 5; n += 1) end(breaker, early);
  expect(breaker.state).toBe('closed');
});
