import { readFile } from 'node:fs';
import { expect, test } from 'vitest';
import { LaterTurns } from '../../src/chat/later-turn.ts';

const busyMs = 5;

/** Long enough that a timer of no time is due. */
function work(): void {
  const until = performance.now() + busyMs;
  while (performance.now() < until);
}

test('each step has a turn of its own, behind all that was due before', async () => {
  const order: string[] = [];
  const turns = new LaterTurns();
  const step = (name: string, more: () => void = () => undefined) =>
    void turns.turn().then(() => {
      order.push(name);
      setTimeout(() => order.push(`timer of ${name}`), 0);
      setImmediate(() => order.push(`callback of ${name}`));
      more();
      work();
    });
  await new Promise<void>((resolve) => {
    // In the poll phase, as a body's last byte is.
    readFile(import.meta.filename, () => {
      setTimeout(() => order.push('timer'), 0);
      // The last word is a callback of the turn after the third step's own.
      step('first', () => step('third', () => setTimeout(() => setImmediate(resolve), 0)));
      step('second');
      setImmediate(() => order.push('callback of this turn'));
      work();
    });
  });
  expect(
    order.filter((name) => !name.startsWith('callback of f') && !name.startsWith('callback of s')),
  ).toEqual([
    'callback of this turn',
    'timer',
    'first',
    'timer of first',
    'second',
    'timer of second',
    'third',
    'timer of third',
    'callback of third',
  ]);
});

test('the parts of a piece of work have a turn each, and so has its result; others have theirs in between', async () => {
  const turns = new LaterTurns();
  const order: string[] = [];
  function* parts(name: string): Generator<undefined, string> {
    order.push(`${name} 1`);
    yield;
    order.push(`${name} 2`);
    return name;
  }
  const done = turns.run(parts('a')).then((name) => order.push(`${name} done`));
  await turns.run(parts('b'));
  await done;
  expect(order).toEqual(['a 1', 'b 1', 'a 2', 'b 2', 'a done']);
  const first = turns.turn().then(() => order.push('turn'));
  order.push('before');
  await first;
  expect(order.slice(-2)).toEqual(['before', 'turn']);
});

test.each([
  { what: 'first', before: 0 },
  { what: 'second', before: 1 },
  { what: 'tenth', before: 9 },
])('a bug in the $what part is the error of its own work, and stops none behind it', async ({ before }) => {
  const turns = new LaterTurns();
  const bug = new Error('a bug');
  function* parts(fails: boolean): Generator<undefined, string> {
    for (let part = 0; part < before; part += 1) yield;
    if (fails) throw bug;
    return 'done';
  }
  const ends = await Promise.allSettled([
    turns.run(parts(true)),
    turns.run(parts(false)),
    turns.run(parts(true)),
    turns.turn(),
  ]);
  expect(ends).toEqual([
    { status: 'rejected', reason: bug },
    { status: 'fulfilled', value: 'done' },
    { status: 'rejected', reason: bug },
    { status: 'fulfilled', value: undefined },
  ]);
  expect(await turns.run(parts(false))).toBe('done');
});
