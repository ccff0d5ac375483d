import { expect, test } from 'vitest';
import { CircuitBreaker } from '../../src/adapters/redis/circuit-breaker.ts';

function broken(): CircuitBreaker {
  const breaker = new CircuitBreaker();
  for (let n = 0; n < 5; n += 1) breaker.failed(0);
  return breaker;
}

test('stays closed until the fifth failure in a row', () => {
  const breaker = new CircuitBreaker();
  for (let n = 0; n < 4; n += 1) breaker.failed(0);
  expect(breaker.allows(0)).toBe(true);
  breaker.succeeded();
  for (let n = 0; n < 4; n += 1) breaker.failed(0);
  expect(breaker.state).toBe('closed');
  breaker.failed(0);
  expect(breaker.state).toBe('open');
});

test('lets nobody through for a second, then one at a time', () => {
  const breaker = broken();
  expect(breaker.allows(999)).toBe(false);
  expect(breaker.allows(1000)).toBe(true);
  expect(breaker.allows(1000)).toBe(false);
  breaker.failed(1040);
  expect(breaker.allows(2039)).toBe(false);
  expect(breaker.allows(2040)).toBe(true);
});

test('closes with the first success', () => {
  const breaker = broken();
  expect(breaker.allows(1000)).toBe(true);
  breaker.succeeded();
  expect(breaker.state).toBe('closed');
  expect(breaker.allows(1000)).toBe(true);
  expect(breaker.allows(1000)).toBe(true);
});
