import { expect, test } from 'vitest';
import { CandidateBreakers } from '../../src/chat/candidate-breakers.ts';
import { breakerStates } from '../../src/core/breaker-state.ts';
import type { AttemptFailure, FailureKind } from '../../src/core/outcome.ts';
import type { TablesInput } from '../harness/gateway/tables.ts';
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

/** Breakers under the default rules, and a hand on its clock. */
function openBreakers(rules: Rules = {}) {
  const tables = testTables({
    cooldown: rules,
  });
  const time = { nowMs: 1_000_000 };
  const breakers = new CandidateBreakers(() => time.nowMs);
  const candidate = candidateOf('openai', tables);
  const fail = (count: number, what = keyRejected, userId = 'user-1', of = candidate): void => {
    for (let index = 0; index < count; index += 1) {
      breakers.started(of, time.nowMs);
      breakers.failed(of, what, time.nowMs, userId, tables);
    }
  };
  const of = (userId: string) =>
    candidateOf('openai', tables, heldKey('openai', { id: `key of ${userId}`, userId }));
  return { breakers, candidate, fail, time, of };
}

test('a candidate is held back by the fifth failure in a row, for five seconds', () => {
  const { breakers, candidate, fail, time } = openBreakers();
  fail(4);
  expect(breakers.holdsBack(candidate)).toBe(false);
  fail(1);
  expect(breakers.holdsBack(candidate)).toBe(true);
  time.nowMs += 4999;
  expect(breakers.holdsBack(candidate)).toBe(true);
  time.nowMs += 1;
  expect(breakers.holdsBack(candidate)).toBe(false);
});

test('a success in between begins the count anew', () => {
  const { breakers, candidate, fail, time } = openBreakers();
  fail(4);
  breakers.succeeded(candidate, time.nowMs);
  fail(4);
  expect(breakers.holdsBack(candidate)).toBe(false);
});

test('each failed probe doubles the pause, up to fifteen seconds', () => {
  const { breakers, candidate, fail, time } = openBreakers();
  fail(5);
  for (const seconds of [5, 10, 15, 15]) {
    time.nowMs += seconds * 1000 - 1;
    expect(breakers.holdsBack(candidate)).toBe(true);
    time.nowMs += 1;
    expect(breakers.holdsBack(candidate)).toBe(false);
    fail(1);
  }
});

test('a probe that succeeds after another failure has begun a pause ends, and leaves that pause its time', () => {
  const { breakers, candidate, fail, time, of } = openBreakers();
  for (const user of ['1', '2', '3', '4', '5']) fail(1, down, user, of(user));
  fail(5);
  time.nowMs += 5000;
  const probeAtMs = time.nowMs;
  breakers.started(candidate, probeAtMs);
  time.nowMs += 1;
  fail(1);
  for (const user of ['1', '2']) fail(1, down, user, of(user));
  breakers.succeeded(candidate, probeAtMs);
  expect(breakers.holdsBack(candidate)).toBe(true);
  time.nowMs += 9999;
  expect(breakers.holdsBack(candidate)).toBe(true);
  time.nowMs += 1;
  expect(breakers.holdsBack(candidate)).toBe(false);
  expect(breakers.stateOf('openai')).toBe('closed');
});

test('a success after a pause forgets it all', () => {
  const { breakers, candidate, fail, time } = openBreakers();
  fail(5);
  time.nowMs += 5000;
  breakers.started(candidate, time.nowMs);
  breakers.succeeded(candidate, time.nowMs);
  fail(4);
  expect(breakers.holdsBack(candidate)).toBe(false);
});

test('failures during the pause, of requests already on their way, do not prolong it', () => {
  const { breakers, candidate, fail, time } = openBreakers();
  fail(20);
  time.nowMs += 5000;
  expect(breakers.holdsBack(candidate)).toBe(false);
});

test('after the pause one request probes, the others still see the candidate as held back', () => {
  const { breakers, candidate, fail, time } = openBreakers();
  fail(5);
  time.nowMs += 5000;
  expect(breakers.holdsBack(candidate)).toBe(false);
  breakers.started(candidate, time.nowMs);
  expect(breakers.holdsBack(candidate)).toBe(true);
  breakers.succeeded(candidate, time.nowMs);
  expect(breakers.holdsBack(candidate)).toBe(false);
});

test('a probe whose client leaves lets the next one probe', () => {
  const { breakers, candidate, fail, time } = openBreakers();
  fail(5);
  time.nowMs += 5000;
  breakers.started(candidate, time.nowMs);
  breakers.abandoned(candidate, time.nowMs);
  expect(breakers.holdsBack(candidate)).toBe(false);
});

test('a probe that ends without blame lets the next one probe', () => {
  const { breakers, candidate, fail, time } = openBreakers();
  fail(5);
  time.nowMs += 5000;
  fail(1, failure('refused'));
  expect(breakers.holdsBack(candidate)).toBe(false);
});

test.each<FailureKind>(['refused', 'rate-limited'])('%s never counts', (kind) => {
  const { breakers, candidate, fail } = openBreakers();
  fail(100, failure(kind));
  expect(breakers.holdsBack(candidate)).toBe(false);
});

test('rate limits count when the tables say so', () => {
  const { breakers, candidate, fail } = openBreakers({ after_429: true });
  fail(5, failure('rate-limited'));
  expect(breakers.holdsBack(candidate)).toBe(true);
});

test("one tenant's bad key never cools another's", () => {
  const { breakers, fail, of } = openBreakers();
  for (const user of ['a', 'b', 'c', 'd']) fail(10, keyRejected, user, of(user));
  expect(breakers.holdsBack(of('a'))).toBe(true);
  expect(breakers.holdsBack(of('e'))).toBe(false);
});

test('trouble of the provider cools it for everybody once three users saw it', () => {
  const { breakers, fail, of } = openBreakers();
  fail(10, down, 'a', of('a'));
  fail(10, down, 'b', of('b'));
  expect(breakers.holdsBack(of('e'))).toBe(false);
  fail(1, down, 'c', of('c'));
  expect(breakers.holdsBack(of('e'))).toBe(true);
});

test('a 5xx for a model that the tables do not name cools its key, and nobody else’s', () => {
  const { breakers, fail, of } = openBreakers();
  const broken = { ...failure('upstream-failed', true), status: 500 };
  const asking = (userId: string, model: string) => ({ ...of(userId), model });
  for (const userId of ['a', 'b', 'c']) fail(5, broken, userId, asking(userId, 'always fails'));
  expect(breakers.holdsBack(of('a'))).toBe(true);
  expect(breakers.holdsBack(of('d'))).toBe(false);
  const named = testTables({}).named.find(({ provider }) => provider === 'openai')?.model ?? '';
  for (const userId of ['a', 'b', 'c']) fail(5, broken, userId, asking(userId, named));
  expect(breakers.holdsBack(of('d')), 'of one that they name').toBe(true);
});

test('users’ own servers have nothing in common: dead ones of several users cool nobody else’s', () => {
  const { breakers, fail } = openBreakers();
  const own = (userId: string) =>
    candidateOf('self_hosted', testTables({}), heldKey('self_hosted', { id: `key of ${userId}`, userId }));
  for (const user of ['a', 'b', 'c', 'd']) fail(10, down, user, own(user));
  expect(breakers.stateOf('self_hosted')).toBe('closed');
  expect([breakers.holdsBack(own('a')), breakers.holdsBack(own('e'))]).toEqual([true, false]);
});

test('trouble of the provider ends for everybody when one of them is served', () => {
  const { breakers, fail, time, of } = openBreakers();
  for (const user of ['a', 'b', 'c']) fail(5, down, user, of(user));
  breakers.started(of('e'), time.nowMs);
  breakers.succeeded(of('e'), time.nowMs);
  expect(breakers.holdsBack(of('f'))).toBe(false);
});

test('three users with less than five failures together change nothing', () => {
  const { breakers, fail, of } = openBreakers();
  for (const user of ['a', 'b', 'c', 'd']) fail(1, down, user, of(user));
  expect(breakers.holdsBack(of('e'))).toBe(false);
});

test('a whole provider goes from closed to open, over its probe, and back, and each step is counted', () => {
  const { breakers, fail, time, of } = openBreakers();
  const counts = () => breakerStates.map((state) => breakers.transitions('openai', state));
  expect([breakers.stateOf('openai'), counts()]).toEqual(['closed', [0, 0, 0]]);
  for (const user of ['a', 'a', 'b', 'b', 'c']) fail(1, down, user, of(user));
  expect([breakers.stateOf('openai'), counts()]).toEqual(['open', [0, 0, 1]]);
  time.nowMs += 5_000;
  expect(breakers.stateOf('openai')).toBe('closed');
  breakers.started(of('d'), time.nowMs);
  expect([breakers.stateOf('openai'), counts()]).toEqual(['half_open', [0, 1, 1]]);
  fail(1, down, 'd', of('d'));
  expect([breakers.stateOf('openai'), counts()]).toEqual(['open', [0, 1, 2]]);
  // Within the pause, as a last resort: that is no probe, and ends the pause all the same.
  breakers.started(of('d'), time.nowMs);
  expect([breakers.stateOf('openai'), counts()]).toEqual(['open', [0, 1, 2]]);
  breakers.succeeded(of('d'), time.nowMs);
  expect([breakers.stateOf('openai'), counts()]).toEqual(['closed', [1, 1, 2]]);
});

test('a last resort that is under way when the pause ends does not keep the others from probing', () => {
  const { breakers, candidate, fail, time } = openBreakers();
  fail(5);
  breakers.started(candidate, time.nowMs);
  time.nowMs += 5000;
  expect(breakers.holdsBack(candidate)).toBe(false);
  breakers.started(candidate, time.nowMs);
  expect(breakers.holdsBack(candidate)).toBe(true);
});

test('a probe that fails for want of a good key is over, and says nothing of the provider', () => {
  const { breakers, fail, time, of } = openBreakers();
  for (const user of ['a', 'b', 'c']) fail(2, down, user, of(user));
  time.nowMs += 5_000;
  fail(1, keyRejected, 'd', of('d'));
  expect(breakers.stateOf('openai')).toBe('closed');
  expect(breakers.holdsBack(of('e'))).toBe(false);
});

test('what began before a pause neither ends nor prolongs it', () => {
  const { breakers, candidate, fail, time } = openBreakers();
  const beforeMs = time.nowMs - 1;
  fail(5);
  breakers.succeeded(candidate, beforeMs);
  expect(breakers.holdsBack(candidate)).toBe(true);
  time.nowMs += 5000;
  const tables = testTables({ cooldown: {} });
  for (let late = 0; late < 10; late += 1) breakers.failed(candidate, down, beforeMs, 'user-1', tables);
  expect(breakers.holdsBack(candidate)).toBe(false);
});

test('only the probe itself ends the wait of the others', () => {
  const { breakers, candidate, fail, time } = openBreakers();
  fail(5);
  const lateMs = time.nowMs + 1;
  time.nowMs += 5000;
  breakers.started(candidate, time.nowMs);
  breakers.abandoned(candidate, lateMs);
  expect(breakers.holdsBack(candidate)).toBe(true);
  breakers.abandoned(candidate, time.nowMs);
  expect(breakers.holdsBack(candidate)).toBe(false);
});

test('a probe that hangs holds the others for the longest pause, then the next one goes', () => {
  const { breakers, candidate, fail, time } = openBreakers();
  fail(5);
  time.nowMs += 5000;
  breakers.started(candidate, time.nowMs);
  time.nowMs += 14_999;
  expect(breakers.holdsBack(candidate)).toBe(true);
  time.nowMs += 1;
  expect(breakers.holdsBack(candidate)).toBe(false);
  breakers.started(candidate, time.nowMs);
  expect(breakers.holdsBack(candidate)).toBe(true);
});

const limited = (seconds: number) => failure('rate-limited', false, seconds * 1000);

test.each<[name: string, rules: Rules, seconds: number, pausedSeconds: number]>([
  ['for as long as the vendor asks', { after_429: true }, 7, 7],
  ['for a fraction of a second', { after_429: true }, 0.25, 0.25],
  ['for no longer than a minute', { after_429: true }, 86_400, 60],
  ['for no longer than the tables allow', { after_429: true, longest_retry_after_seconds: 20 }, 86_400, 20],
])('one 429 sets its candidate aside %s', (_name, rules, seconds, pausedSeconds) => {
  const { breakers, candidate, fail, time } = openBreakers(rules);
  fail(1, limited(seconds));
  time.nowMs += pausedSeconds * 1000 - 1;
  expect(breakers.holdsBack(candidate)).toBe(true);
  time.nowMs += 1;
  expect(breakers.holdsBack(candidate)).toBe(false);
});

test('a Retry-After changes nothing where the tables do not say so', () => {
  const { breakers, candidate, fail } = openBreakers();
  fail(100, limited(7));
  expect(breakers.holdsBack(candidate)).toBe(false);
});

test('a Retry-After outlives answers of requests that were let in before', () => {
  const { breakers, candidate, fail, time } = openBreakers({ after_429: true });
  fail(1, limited(7));
  breakers.succeeded(candidate, time.nowMs);
  expect(breakers.holdsBack(candidate)).toBe(true);
  time.nowMs += 7000;
  expect(breakers.holdsBack(candidate)).toBe(false);
});

test("a Retry-After sets one tenant's key aside, and nobody else's", () => {
  const { breakers, fail, of } = openBreakers({ after_429: true });
  for (const user of ['a', 'b', 'c']) fail(3, limited(7), user, of(user));
  expect(breakers.holdsBack(of('a'))).toBe(true);
  expect(breakers.holdsBack(of('e'))).toBe(false);
  expect(breakers.stateOf('openai')).toBe('closed');
});

test('of fifty thousand keys the breakers are kept, of those used last', () => {
  const { breakers, fail, of } = openBreakers();
  const [first, second] = [of('first'), of('second')];
  fail(5, keyRejected, 'first', first);
  fail(5, keyRejected, 'second', second);
  for (let user = 0; user < 49_998; user += 1) fail(1, keyRejected, `user-${user}`, of(`user-${user}`));
  expect(breakers.holdsBack(first)).toBe(true);
  fail(1, keyRejected, 'one more', of('one more'));
  expect([breakers.holdsBack(first), breakers.holdsBack(second)]).toEqual([true, false]);
});
