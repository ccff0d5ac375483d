/** Whole answers that nobody takes: all of them together are bounded, and who has most gives way first. */
import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { unreadAnswers } from '../../harness/gateway/unread-answers.ts';

const mebibyte = 1024 * 1024;

/** A client's end: destroyed responses close, as Node's do, a little later. */
class Response extends EventEmitter {
  destroyed = false;
  destroy(): void {
    this.destroyed = true;
    process.nextTick(() => this.emit('close'));
  }
}

/** Adds answers, `user:mebibytes` each, to room for 10 MiB; which of them are let go. */
async function letGo(...answers: string[]): Promise<{ gone: number[]; held: number; told: number }> {
  const room = unreadAnswers(10 * mebibyte);
  let told = 0;
  room.onLetGo = () => {
    told += 1;
  };
  const responses = answers.map((answer) => {
    const [user = '', size = ''] = answer.split(':');
    const response = new Response();
    room.add(user, response, Number(size) * mebibyte);
    return response;
  });
  await new Promise(setImmediate);
  const gone = responses.flatMap(({ destroyed }, index) => (destroyed ? [index] : []));
  const held = room.heldBytes / mebibyte;
  for (const response of responses) response.emit('close');
  expect(room.heldBytes).toBe(0);
  return { gone, held, told };
}

test('what was taken before its response closed counts no more, and leaves no listener', () => {
  const room = unreadAnswers(10 * mebibyte);
  const response = new Response();
  for (let event = 0; event < 20; event += 1) {
    const taken = room.add('a', response, mebibyte);
    expect(room.heldBytes).toBe(mebibyte);
    taken();
    expect(room.heldBytes).toBe(0);
  }
  expect(response.listenerCount('close')).toBe(0);
});

test.each<[string, string[], number[], number]>([
  ['all that fit stay', ['a:4', 'a:3', 'b:3'], [], 10],
  ['the oldest of one user goes', ['a:4', 'a:4', 'a:4'], [0], 8],
  ['as many go as it takes', ['a:3', 'a:3', 'a:3', 'a:9'], [0, 1, 2], 9],
  ['the user with the most gives way, not the one who comes', ['b:2', 'a:4', 'a:4', 'b:2'], [1], 8],
  ['others have the room, and one large answer comes', ['a:4', 'b:4', 'c:4'], [0], 8],
  ['one alone may be larger than all the room', ['a:12'], [], 12],
  ['the one that was just written is not let go for its size', ['a:1', 'b:12'], [0], 12],
  ['small ones are not counted', ['a:0.05', 'b:10', 'a:0.05'], [], 10],
])('%s', async (_name, answers, gone, held) => {
  expect(await letGo(...answers)).toEqual({ gone, held, told: gone.length });
});
