import { readFile } from 'node:fs';
import { expect, test } from 'vitest';
import { inLaterTurn } from '../../src/chat/later-turn.ts';

test('a later turn begins when what was due before is done, timers and callbacks of the present turn included', async () => {
  const order: string[] = [];
  await new Promise<void>((resolve) => {
    // In the poll phase, as a body's last byte is.
    readFile(import.meta.filename, () => {
      inLaterTurn(() => {
        order.push('later');
        resolve();
      });
      setTimeout(() => order.push('timer'), 0);
      setImmediate(() => order.push('callback of this turn'));
      // Long enough that the timer is due.
      const until = performance.now() + 5;
      while (performance.now() < until);
    });
  });
  expect(order).toEqual(['callback of this turn', 'timer', 'later']);
});
