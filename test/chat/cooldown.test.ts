import { expect, test } from 'vitest';
import { CooldownBook, circuitStates } from '../../src/chat/cooldown.ts';
import type { AttemptFailure, FailureKind } from '../../src/core/outcome.ts';
import type { TablesInput } from '../support/tables.ts';
import { candidateOf, heldKey, testTables } from './story.ts';

type Rules = TablesInput['cooldown'];

function failure(
  kind: FailureKind,
  blamesProvider = false,
  retryAfterMs: number | null = null,
): AttemptFailure {
  const blamesCandidate = !['rate-limited', 'refused'].includes(kind);
  return {
    kind,
    status: null,
    reason: '',
    vendorCode: null,
    retryAfterMs,
    reply: null,
    blamesCandidate,
    blamesProvider,
  };
}

const keyRejected = failure('key-rejected');
const down = failure('unreachable', true);

/** A book under the default rules, and a hand on its clock. */
function openBook(rules: Rules = {}) {
  const tables = testTables({
    cooldown: rules,
  });
  const time = { nowMs: 1_000_000 };
  const book = new CooldownBook(() => time.nowMs);
  const candidate = candidateOf('openai', tables);
  const fail = (count: number, what = keyRejected, userId = 'user-1', of = candidate): void => {
    for (let index = 0; index < count; index += 1) {
      book.started(of, time.nowMs);
      book.failed(of, what, time.nowMs, userId, tables);
    }
  };
  const of = (userId: string) =>
    candidateOf('openai', tables, heldKey('openai', { id: `key of ${userId}`, userId }));
  return { book, candidate, fail, time, of };
}

test('a candidate is cooled by the fifth failure in a row, for five seconds', () => {
  const { book, candidate, fail, time } = openBook();
  fail(4);
  expect(book.isCooled(candidate)).toBe(false);
  fail(1);
  expect(book.isCooled(candidate)).toBe(true);
  time.nowMs += 4999;
  expect(book.isCooled(candidate)).toBe(true);
  time.nowMs += 1;
  expect(book.isCooled(candidate)).toBe(false);
});

test('a success in between begins the count anew', () => {
  const { book, candidate, fail, time } = openBook();
  fail(4);
  book.succeeded(candidate, time.nowMs);
  fail(4);
  expect(book.isCooled(candidate)).toBe(false);
});

test('each failed probe doubles the pause, up to fifteen seconds', () => {
  const { book, candidate, fail, time } = openBook();
  fail(5);
  for (const seconds of [5, 10, 15, 15]) {
    time.nowMs += seconds * 1000 - 1;
    expect(book.isCooled(candidate)).toBe(true);
    time.nowMs += 1;
    expect(book.isCooled(candidate)).toBe(false);
    fail(1);
  }
});

test('a success after a pause forgets it all', () => {
  const { book, candidate, fail, time } = openBook();
  fail(5);
  time.nowMs += 5000;
  book.started(candidate, time.nowMs);
  book.succeeded(candidate, time.nowMs);
  fail(4);
  expect(book.isCooled(candidate)).toBe(false);
});

test('failures during the pause, of requests already on their way, do not prolong it', () => {
  const { book, candidate, fail, time } = openBook();
  fail(20);
  time.nowMs += 5000;
  expect(book.isCooled(candidate)).toBe(false);
});

test('after the pause one request probes, the others still see the candidate as cooled', () => {
  const { book, candidate, fail, time } = openBook();
  fail(5);
  time.nowMs += 5000;
  expect(book.isCooled(candidate)).toBe(false);
  book.started(candidate, time.nowMs);
  expect(book.isCooled(candidate)).toBe(true);
  book.succeeded(candidate, time.nowMs);
  expect(book.isCooled(candidate)).toBe(false);
});

test('a probe whose client leaves lets the next one probe', () => {
  const { book, candidate, fail, time } = openBook();
  fail(5);
  time.nowMs += 5000;
  book.started(candidate, time.nowMs);
  book.abandoned(candidate, time.nowMs);
  expect(book.isCooled(candidate)).toBe(false);
});

test('a probe that ends without blame lets the next one probe', () => {
  const { book, candidate, fail, time } = openBook();
  fail(5);
  time.nowMs += 5000;
  fail(1, failure('refused'));
  expect(book.isCooled(candidate)).toBe(false);
});

test.each<FailureKind>(['refused', 'rate-limited'])('%s never counts', (kind) => {
  const { book, candidate, fail } = openBook();
  fail(100, failure(kind));
  expect(book.isCooled(candidate)).toBe(false);
});

test('rate limits count when the tables say so', () => {
  const { book, candidate, fail } = openBook({ after_429: true });
  fail(5, failure('rate-limited'));
  expect(book.isCooled(candidate)).toBe(true);
});

test("one tenant's bad key never cools another's", () => {
  const { book, fail, of } = openBook();
  for (const user of ['a', 'b', 'c', 'd']) fail(10, keyRejected, user, of(user));
  expect(book.isCooled(of('a'))).toBe(true);
  expect(book.isCooled(of('e'))).toBe(false);
});

test('trouble of the provider cools it for everybody once three users saw it', () => {
  const { book, fail, of } = openBook();
  fail(10, down, 'a', of('a'));
  fail(10, down, 'b', of('b'));
  expect(book.isCooled(of('e'))).toBe(false);
  fail(1, down, 'c', of('c'));
  expect(book.isCooled(of('e'))).toBe(true);
});

test('users’ own servers have nothing in common: dead ones of several users cool nobody else’s', () => {
  const { book, fail } = openBook();
  const own = (userId: string) =>
    candidateOf('self_hosted', testTables({}), heldKey('self_hosted', { id: `key of ${userId}`, userId }));
  for (const user of ['a', 'b', 'c', 'd']) fail(10, down, user, own(user));
  expect(book.circuitOf('self_hosted')).toBe('closed');
  expect([book.isCooled(own('a')), book.isCooled(own('e'))]).toEqual([true, false]);
});

test('trouble of the provider ends for everybody when one of them is served', () => {
  const { book, fail, time, of } = openBook();
  for (const user of ['a', 'b', 'c']) fail(5, down, user, of(user));
  book.started(of('e'), time.nowMs);
  book.succeeded(of('e'), time.nowMs);
  expect(book.isCooled(of('f'))).toBe(false);
});

test('three users with less than five failures together change nothing', () => {
  const { book, fail, of } = openBook();
  for (const user of ['a', 'b', 'c', 'd']) fail(1, down, user, of(user));
  expect(book.isCooled(of('e'))).toBe(false);
});

test('a whole provider goes from closed to open, over its probe, and back, and each step is counted', () => {
  const { book, fail, time, of } = openBook();
  const counts = () => circuitStates.map((state) => book.transitions('openai', state));
  expect([book.circuitOf('openai'), counts()]).toEqual(['closed', [0, 0, 0]]);
  for (const user of ['a', 'a', 'b', 'b', 'c']) fail(1, down, user, of(user));
  expect([book.circuitOf('openai'), counts()]).toEqual(['open', [0, 0, 1]]);
  time.nowMs += 5_000;
  expect(book.circuitOf('openai')).toBe('closed');
  book.started(of('d'), time.nowMs);
  expect([book.circuitOf('openai'), counts()]).toEqual(['half_open', [0, 1, 1]]);
  fail(1, down, 'd', of('d'));
  expect([book.circuitOf('openai'), counts()]).toEqual(['open', [0, 1, 2]]);
  book.started(of('d'), time.nowMs);
  book.succeeded(of('d'), time.nowMs);
  expect([book.circuitOf('openai'), counts()]).toEqual(['closed', [1, 2, 2]]);
});

test('a probe that fails for want of a good key is over, and says nothing of the provider', () => {
  const { book, fail, time, of } = openBook();
  for (const user of ['a', 'b', 'c']) fail(2, down, user, of(user));
  time.nowMs += 5_000;
  fail(1, keyRejected, 'd', of('d'));
  expect(book.circuitOf('openai')).toBe('closed');
  expect(book.isCooled(of('e'))).toBe(false);
});

test('what began before a pause neither ends nor prolongs it', () => {
  const { book, candidate, fail, time } = openBook();
  const beforeMs = time.nowMs - 1;
  fail(5);
  book.succeeded(candidate, beforeMs);
  expect(book.isCooled(candidate)).toBe(true);
  time.nowMs += 5000;
  const tables = testTables({ cooldown: {} });
  for (let late = 0; late < 10; late += 1) book.failed(candidate, down, beforeMs, 'user-1', tables);
  expect(book.isCooled(candidate)).toBe(false);
});

test('only the probe itself ends the wait of the others', () => {
  const { book, candidate, fail, time } = openBook();
  fail(5);
  const lateMs = time.nowMs + 1;
  time.nowMs += 5000;
  book.started(candidate, time.nowMs);
  book.abandoned(candidate, lateMs);
  expect(book.isCooled(candidate)).toBe(true);
  book.abandoned(candidate, time.nowMs);
  expect(book.isCooled(candidate)).toBe(false);
});

test('a probe that hangs holds the others for the longest pause, then the next one goes', () => {
  const { book, candidate, fail, time } = openBook();
  fail(5);
  time.nowMs += 5000;
  book.started(candidate, time.nowMs);
  time.nowMs += 14_999;
  expect(book.isCooled(candidate)).toBe(true);
  time.nowMs += 1;
  expect(book.isCooled(candidate)).toBe(false);
  book.started(candidate, time.nowMs);
  expect(book.isCooled(candidate)).toBe(true);
});

const limited = (seconds: number) => failure('rate-limited', false, seconds * 1000);

test.each<[name: string, rules: Rules, seconds: number, pausedSeconds: number]>([
  ['for as long as the vendor asks', { after_429: true }, 7, 7],
  ['for a fraction of a second', { after_429: true }, 0.25, 0.25],
  ['for no longer than a minute', { after_429: true }, 86_400, 60],
  ['for no longer than the tables allow', { after_429: true, longest_retry_after_seconds: 20 }, 86_400, 20],
])('one 429 sets its candidate aside %s', (_name, rules, seconds, pausedSeconds) => {
  const { book, candidate, fail, time } = openBook(rules);
  fail(1, limited(seconds));
  time.nowMs += pausedSeconds * 1000 - 1;
  expect(book.isCooled(candidate)).toBe(true);
  time.nowMs += 1;
  expect(book.isCooled(candidate)).toBe(false);
});

test('a Retry-After changes nothing where the tables do not say so', () => {
  const { book, candidate, fail } = openBook();
  fail(100, limited(7));
  expect(book.isCooled(candidate)).toBe(false);
});

test('a Retry-After outlives answers of requests that were let in before', () => {
  const { book, candidate, fail, time } = openBook({ after_429: true });
  fail(1, limited(7));
  book.succeeded(candidate, time.nowMs);
  expect(book.isCooled(candidate)).toBe(true);
  time.nowMs += 7000;
  expect(book.isCooled(candidate)).toBe(false);
});

test("a Retry-After sets one tenant's key aside, and nobody else's", () => {
  const { book, fail, of } = openBook({ after_429: true });
  for (const user of ['a', 'b', 'c']) fail(3, limited(7), user, of(user));
  expect(book.isCooled(of('a'))).toBe(true);
  expect(book.isCooled(of('e'))).toBe(false);
  expect(book.circuitOf('openai')).toBe('closed');
});
