/** One user's queries take a few places at a time, whatever that user sends; others never wait for them. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { poolConnectMs as maxWaitMs } from '../../src/adapters/postgres/pool.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { maxWaitingPerUser, UserTurns } from '../../src/limits/user-turns.ts';

const maxUnderWay = 3;
const ample = { connections: 10, maxWaitMs };

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Work that ends when it is told to. */
class Work {
  readonly turns: UserTurns;
  readonly #ends: { userId: string; end: () => void }[] = [];
  readonly send: (userId: string) => Promise<string>;

  constructor(options = ample) {
    this.turns = new UserTurns(options);
    this.send = this.turns.share((userId: string) => {
      return new Promise<string>((resolve) => {
        this.#ends.push({ userId, end: () => resolve(userId) });
      });
    });
  }

  underWay(userId: string): number {
    return this.#ends.filter((one) => one.userId === userId).length;
  }

  async endOne(userId: string): Promise<void> {
    const [one] = this.#ends.splice(
      this.#ends.findIndex((some) => some.userId === userId),
      1,
    );
    one?.end();
    await vi.advanceTimersByTimeAsync(0);
  }
}

const refusal = {
  status: 429,
  type: 'rate_limit_error',
  code: 'too_many_queries',
  headers: { 'retry-after': '1' },
};

test('three of a user run at once, the others wait in line, and another user runs at once', async () => {
  const work = new Work();
  const ann = Array.from({ length: 50 }, () => work.send('ann'));
  void work.send('bob');
  await vi.advanceTimersByTimeAsync(0);
  expect([work.underWay('ann'), work.underWay('bob')]).toEqual([maxUnderWay, 1]);
  for (let ended = 0; ended < 50; ended += 1) {
    expect(work.underWay('ann')).toBe(Math.min(maxUnderWay, 50 - ended));
    await work.endOne('ann');
  }
  expect(await Promise.all(ann)).toHaveLength(50);
  await work.endOne('bob');
  expect(work.turns.users).toBe(0);
});

test.each([2, 3, 4, 5, 10, 200])('of a pool of %i one user never has all', async (connections) => {
  const work = new Work({ connections, maxWaitMs });
  const ann = Array.from({ length: 20 }, () => work.send('ann'));
  await vi.advanceTimersByTimeAsync(0);
  expect(work.underWay('ann')).toBe(Math.min(maxUnderWay, connections - 1));
  for (let ended = 0; ended < 20; ended += 1) await work.endOne('ann');
  expect(await Promise.all(ann)).toHaveLength(20);
});

test('a pool of one cannot be shared', () => {
  expect(() => new UserTurns({ connections: 1, maxWaitMs })).toThrow(RangeError);
});

test('a full line is refused at once, and a turn that does not come in time is refused then', async () => {
  const work = new Work();
  const all = Array.from({ length: maxUnderWay + maxWaitingPerUser }, () =>
    work.send('ann').catch((error) => error),
  );
  await expect(work.send('ann')).rejects.toMatchObject(refusal);
  await vi.advanceTimersByTimeAsync(maxWaitMs);
  expect(work.underWay('ann')).toBe(maxUnderWay);
  for (let ended = 0; ended < maxUnderWay; ended += 1) await work.endOne('ann');
  const outcomes: unknown[] = await Promise.all(all);
  expect(outcomes.slice(0, maxUnderWay)).toEqual(Array(maxUnderWay).fill('ann'));
  for (const late of outcomes.slice(maxUnderWay)) {
    expect(late).toBeInstanceOf(GatewayError);
    expect(late).toMatchObject(refusal);
  }
  expect(work.turns.users).toBe(0);
});

test('work that fails gives its turn back', async () => {
  const turns = new UserTurns(ample);
  const fail = turns.share((userId: string) => Promise.reject(new Error(userId)));
  const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => fail('ann')));
  expect(outcomes.map((outcome) => outcome.status)).toEqual(Array(10).fill('rejected'));
  expect(turns.users).toBe(0);
});
