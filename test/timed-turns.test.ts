/** What decoders give out shares the turns of the event loop. */
import { randomBytes } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { decoderFor } from '../src/adapters/upstream/content-decoder.ts';
import { longestReadingMs } from '../src/adapters/upstream/reading-turns.ts';
import { TimedTurns } from '../src/timed-turns.ts';

/** Turns by a clock that only the steps move. */
function withSteps(stepMs: number) {
  let nowMs = 0;
  const done: number[] = [];
  const turns = new TimedTurns(longestReadingMs, () => nowMs);
  const step = (name: number) => (): void => {
    nowMs += stepMs;
    done.push(name);
  };
  return { turns, done, step };
}

test('a turn ends once its steps took as long as reading may; the others follow in order', async () => {
  const { turns, done, step } = withSteps(longestReadingMs / 2);
  const ran = Array.from({ length: 7 }, (_, name) => turns.run(step(name)));
  expect(ran).toEqual([true, true, false, false, false, false, false]);
  const after: number[] = [];
  for (let turns = 0; turns < 4; turns += 1) {
    after.push(done.length);
    await turn();
  }
  expect(after).toEqual([2, 4, 6, 7]);
  expect(done).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(turns.run(step(7))).toBe(true);
});

test('a step that throws takes no other along', async () => {
  const { turns, done, step } = withSteps(longestReadingMs);
  turns.run(step(0));
  turns.run(step(1));
  const bug = (): never => {
    throw new Error('a bug');
  };
  expect(() => new TimedTurns(longestReadingMs, () => 0).run(bug)).toThrow('a bug');
  await turn();
  await turn();
  expect(done).toEqual([0, 1]);
});

test.each([0, 1, longestReadingMs])(
  'of many answers at once each comes whole, where a piece takes %i ms',
  async (ms) => {
    let nowMs = 0;
    const turns = new TimedTurns(longestReadingMs, () => nowMs);
    const texts = Array.from({ length: 20 }, (_, index) =>
      randomBytes(20_000 * (index % 5)).toString('base64'),
    );
    const came = await Promise.all(
      texts.map(
        (text) =>
          new Promise<string>((resolve, reject) => {
            let got = '';
            const decoder = decoderFor(
              'gzip',
              true,
              {
                onData: (chunk) => {
                  nowMs += ms;
                  got += chunk.toString();
                },
                onEnd: () => resolve(got),
                onProblem: reject,
                pause: () => undefined,
                resume: () => undefined,
              },
              undefined,
              turns,
            );
            decoder?.write(gzipSync(text));
            decoder?.end();
          }),
      ),
    );
    expect(came).toEqual(texts);
  },
);

test('nothing comes out of a decoder that was let go while its bytes waited', async () => {
  const waiting = Promise.withResolvers<() => void>();
  const later = {
    run: (step: () => void) => {
      waiting.resolve(step);
      return false;
    },
  };
  const heard: string[] = [];
  const listener = {
    onData: () => heard.push('data'),
    onEnd: () => heard.push('end'),
    onProblem: () => heard.push('problem'),
    pause: () => undefined,
    resume: () => undefined,
  };
  const decoder = decoderFor('gzip', true, listener, undefined, later);
  decoder?.write(gzipSync('hello'));
  const step = await waiting.promise;
  decoder?.destroy();
  step();
  expect(heard).toEqual([]);
});
