import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AnswerBudget, smallAnswerBytes } from '../../src/chat/answer-budget.ts';
import { attempt } from '../../src/chat/attempt.ts';
import { sse } from '../harness/vendors/openai-wire.ts';
import { callOf, candidateOf, testTables, World } from './story.ts';

const mebibyte = 1024 * 1024;

describe('the budget of large answers', () => {
  test('leaves to the others as much as one user holds', () => {
    const budget = new AnswerBudget(12 * mebibyte, 1);
    expect(budget.move('a', 0, 4 * mebibyte)).toBe(true);
    expect(budget.move('a', 0, 4 * mebibyte)).toBe(false);
    expect(budget.move('a', 0, 2 * mebibyte)).toBe(true);
    expect(budget.move('b', 0, 3 * mebibyte)).toBe(true);
    expect(budget.move('c', 0, 1 * mebibyte)).toBe(true);
    budget.move('a', 4 * mebibyte, 0);
    expect(budget.move('b', 0, 3 * mebibyte)).toBe(false);
    expect(budget.heldBytes).toBe(6 * mebibyte);
  });

  test('takes a single answer of any size', () => {
    const budget = new AnswerBudget(mebibyte, 1);
    expect(budget.move('a', 0, 8 * mebibyte)).toBe(true);
    expect(budget.move('a', 8 * mebibyte, 16 * mebibyte)).toBe(true);
    expect(budget.move('b', 0, 1)).toBe(false);
    budget.move('a', 16 * mebibyte, 0);
    expect(budget.fullness).toBe(0);
    expect(budget.move('b', 0, 1)).toBe(true);
  });

  test('is empty when all have given back, whatever was refused', () => {
    const step = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(4), fc.nat(2000));
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const budget = new AnswerBudget(5000, 1);
        const held = new Map<string, number>();
        const move = (user: string, answer: string, wanted: number): void => {
          if (budget.move(user, held.get(answer) ?? 0, wanted)) held.set(answer, wanted);
        };
        for (const [user, answer, wanted] of steps) {
          move(user, user + answer, wanted);
          expect(budget.heldBytes).toBe([...held.values()].reduce((sum, bytes) => sum + bytes, 0));
        }
        for (const answer of held.keys()) move(answer.slice(0, 1), answer, 0);
        expect(budget.heldBytes).toBe(0);
      }),
    );
  });
});

/** Vendors whose answers stop before their end, until there is no room for one more. */
describe.each([
  ['JSON', false, 200, '{"x":"'],
  ['a stream before its first event', true, 200, 'data: {"x":"'],
])('answers in %s that never end', (_name, stream, status, first) => {
  const tables = testTables();

  function begin(world: World, userId: string, signal: AbortSignal) {
    const call = callOf({ userId, tables, request: { stream } });
    const candidate = candidateOf('openai', tables);
    const dueMs = performance.now() + 60_000;
    return attempt(world.openAttempt(call, candidate), call, world.deps, dueMs, signal, world.room(call));
  }

  test('have room up to a bound; what goes beyond fails, and all is given back', async () => {
    const world = new World();
    const stop = new AbortController();
    const part = 'x'.repeat(200 * 1024);
    const attempts = Array.from({ length: 8 }, (_, i) => begin(world, `user-${i % 2}`, stop.signal));
    for (let i = 0; i < attempts.length; i += 1) {
      const upstream = await world.transport.call(i);
      upstream.head(status, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
      upstream.data(first, part);
    }
    expect(world.heldAnswerBytes).toBeGreaterThan(smallAnswerBytes);
    expect(world.answersFullness).toBeLessThanOrEqual(1);
    const aborted = world.transport.calls.filter((upstream) => upstream.aborted);
    expect(aborted.length).toBeGreaterThan(2);
    // Small ones are not in the way of large ones, nor these of them.
    const small = begin(world, 'user-9', stop.signal);
    const upstream = await world.transport.call(attempts.length);
    upstream.head(status, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
    upstream.data(stream ? sse({ choices: [{ delta: { content: 'a' } }] }) : 'no JSON').end();
    expect((await small).kind).toBe(stream ? 'stream-opened' : 'failed');
    stop.abort('client-gone');
    const outcomes = await Promise.all(attempts);
    const reasons = outcomes.map((outcome) =>
      outcome.kind === 'failed' ? outcome.failure.kind : outcome.kind,
    );
    expect(new Set(reasons)).toEqual(new Set(['cancelled', 'no-room']));
    expect(world.heldAnswerBytes).toBe(0);
  });
});

/** What a server of one's own sends behind a token, on as many streams as there are; each of them is small. */
describe.each([
  ['the beginning of an event', `data: {"x":"${'x'.repeat(50_000)}`],
  ['an event without its end', `data: {"x":"${'x'.repeat(50_000)}"}\n`],
  ['a name of an event', `event: ${'x'.repeat(25_000)}\n`],
  [
    'choices',
    Array.from({ length: 40 }, (_, index) => sse({ choices: [{ index, delta: { content: 'a' } }] })).join(''),
  ],
])('open streams that each keep a little: %s', (_what, kept) => {
  test.each([
    ['behind a token in the same read', (token: string) => [token + kept]],
    ['in reads of their own', (token: string) => [token, kept]],
  ])('have room up to a bound together, %s', async (_how, readsOf) => {
    const world = new World();
    const tables = testTables();
    const stop = new AbortController();
    const ends: unknown[] = [];
    for (let index = 0; index < 80; index += 1) {
      const call = callOf({ userId: `user-${index % 2}`, tables, request: { stream: true } });
      const candidate = candidateOf('self_hosted', tables);
      const dueMs = performance.now() + 60_000;
      const opened = world.openAttempt(call, candidate);
      const opening = attempt(opened, call, world.deps, dueMs, stop.signal, world.room(call));
      const upstream = await world.transport.call(index);
      const [first = '', ...more] = readsOf(sse({ choices: [{ delta: { content: 'a' } }] }));
      upstream.stream(first);
      const outcome = await opening;
      if (outcome.kind !== 'stream-opened') {
        ends.push(outcome);
        continue;
      }
      outcome.stream.attach({ onBytes: () => undefined, onEnd: (end) => ends.push(end) });
      for (const read of more) upstream.data(read);
      expect(world.answers.small.fullness).toBeLessThanOrEqual(1);
    }
    expect(world.answers.large.heldBytes).toBe(0);
    expect(world.answers.small.fullness).toBeGreaterThan(0.5);
    expect(ends.length).toBeGreaterThan(30);
    // What a vendor sends is neither counted nor in their way.
    const call = callOf({ userId: 'user-9', tables, request: { stream: false } });
    const opened = world.openAttempt(call, candidateOf('openai', tables));
    const dueMs = performance.now() + 60_000;
    const asked = attempt(opened, call, world.deps, dueMs, stop.signal, world.room(call));
    const vendor = await world.transport.call(80);
    vendor.head(200, { 'content-type': 'application/json' });
    vendor.data(...Array.from({ length: 7 }, () => 'x'.repeat(9_000))).end();
    expect(await asked).toMatchObject({ kind: 'failed', failure: { kind: 'unreadable' } });
    stop.abort('client-gone');
    expect(ends).toHaveLength(80);
    expect(world.heldAnswerBytes).toBe(0);
  });
});

test('an answer that its client has taken leaves its room at once, however silent its vendor is', async () => {
  const world = new World();
  const tables = testTables();
  const stop = new AbortController();
  const call = callOf({ tables, request: { stream: true } });
  const opened = world.openAttempt(call, candidateOf('openai', tables));
  const opening = attempt(
    opened,
    call,
    world.deps,
    performance.now() + 60_000,
    stop.signal,
    world.room(call),
  );
  const upstream = await world.transport.call(0);
  upstream.stream(sse({ choices: [{ delta: { content: 'x'.repeat(200 * 1024) } }] }));
  const outcome = await opening;
  if (outcome.kind !== 'stream-opened') throw new Error(outcome.kind);
  expect(world.heldAnswerBytes).toBeGreaterThan(200 * 1024);
  outcome.stream.attach({ onBytes: () => undefined, onEnd: () => undefined });
  expect(world.heldAnswerBytes).toBe(0);
  stop.abort('client-gone');
  expect(world.heldAnswerBytes).toBe(0);
});

test('what open streams keep of choices and calls has room up to a bound, however well it is read', async () => {
  const world = new World();
  const tables = testTables();
  const stop = new AbortController();
  const choices = Array.from({ length: 128 }, (_, index) =>
    sse({ choices: [{ index, delta: { content: 'a' } }] }),
  );
  const ends: unknown[] = [];
  const open = async (index: number): Promise<void> => {
    const call = callOf({ userId: `user-${index % 2}`, tables, request: { stream: true } });
    const opening = attempt(
      world.openAttempt(call, candidateOf('openai', tables)),
      call,
      world.deps,
      performance.now() + 60_000,
      stop.signal,
      world.room(call),
    );
    const upstream = await world.transport.call(index);
    upstream.stream(sse({ choices: [{ delta: { content: 'a' } }] }));
    const outcome = await opening;
    if (outcome.kind !== 'stream-opened') throw new Error(outcome.kind);
    outcome.stream.attach({ onBytes: () => undefined, onEnd: (end) => ends.push(end) });
    expect(world.answersFullness).toBeLessThanOrEqual(1);
    upstream.data(choices.join(''));
  };
  for (let index = 0; index < 100; index += 1) await open(index);
  expect(world.heldAnswerBytes).toBeGreaterThan(0);
  expect(world.answersFullness).toBeLessThanOrEqual(1);
  expect(ends.length).toBeGreaterThan(30);
  expect(ends[0]).toMatchObject({ kind: 'failed', reason: expect.stringContaining('no room') });
  stop.abort('client-gone');
  expect(ends).toHaveLength(100);
  expect(world.heldAnswerBytes).toBe(0);
});
