import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Cancellation } from '../../src/chat/cancellation.ts';
import type { Follower, FollowerResult, Joined, Leader } from '../../src/chat/in-flight-requests.ts';
import { InFlightRequests } from '../../src/chat/in-flight-requests.ts';

/** What a follower is left with: a value, or the lead. */
const endOf = async (one: Follower<string> | undefined): Promise<string | null> => {
  const end = await one?.result;
  return end?.kind === 'value' ? end.value : 'the lead';
};
const endsOf = (joined: readonly Follower<string>[]) => Promise.all(joined.map(endOf));

/** Joins `count` callers of one key, each with a client of its own. */
function joinAll(requests: InFlightRequests<string>, count: number, key = 'k') {
  const clients = Array.from({ length: count }, () => new AbortController());
  const joined = clients.map((client) => requests.join(key, client.signal));
  const leaders = joined.filter((one): one is Leader<string> => one.kind === 'leader');
  const followers = joined.filter((one): one is Follower<string> => one.kind === 'follower');
  return { clients, lead: leaders[0] as Leader<string>, leaders, followers };
}

const listenersOf = (clients: readonly AbortController[]): number =>
  clients.reduce((sum, client) => sum + getEventListeners(client.signal, 'abort').length, 0);

test('of 100 callers one works and all have its value', async () => {
  const requests = new InFlightRequests<string>(10);
  const { clients, leaders, lead, followers } = joinAll(requests, 100);
  expect(leaders).toHaveLength(1);
  lead.resolve('answer');
  expect(await endsOf(followers)).toEqual(Array(99).fill('answer'));
  expect(requests.size).toBe(0);
  expect(listenersOf(clients)).toBe(0);
});

test('of a thousand callers a few go on in each turn of the event loop', async () => {
  const { lead, followers } = joinAll(new InFlightRequests<string>(10), 1_000);
  let told = 0;
  for (const follower of followers) void follower.result.then(() => (told += 1));
  lead.resolve(null);
  let most = 0;
  for (let before = 0; told < 999; before = told) {
    await new Promise(setImmediate);
    most = Math.max(most, told - before);
  }
  expect(most).toBeLessThanOrEqual(64);
});

test('who waits no longer, while it is told to others, has it all the same', async () => {
  const { lead, followers } = joinAll(new InFlightRequests<string>(10), 100);
  lead.resolve('answer');
  const last = followers.at(-1);
  last?.leave();
  expect(await endOf(last)).toBe('answer');
  expect(lead.signal.aborted).toBe(false);
});

test('the work goes on for 99 when the one who began it leaves', async () => {
  const { clients, lead, followers } = joinAll(new InFlightRequests<string>(10), 100);
  clients[0]?.abort();
  expect(lead.signal.aborted).toBe(false);
  lead.resolve('answer');
  expect(await endsOf(followers)).toEqual(Array(99).fill('answer'));
});

test('the work is aborted when the last one leaves, and not before', async () => {
  const requests = new InFlightRequests<string>(10);
  const { clients, lead, followers } = joinAll(requests, 100);
  const left = followers.map((one) => one.result.catch((reason: unknown) => reason));
  for (const client of clients) {
    expect(lead.signal.aborted).toBe(false);
    client.abort('gone');
  }
  expect(lead.signal.aborted).toBe(true);
  expect(await Promise.all(left)).toEqual(Array(99).fill('gone'));
  expect(requests.size).toBe(0);
  expect(listenersOf(clients)).toBe(0);
});

test('a newcomer after everybody left leads a request of its own', () => {
  const requests = new InFlightRequests<string>(10);
  const { clients, lead } = joinAll(requests, 1);
  clients[0]?.abort();
  const next = joinAll(requests, 1);
  expect(next.leaders).toHaveLength(1);
  lead.resolve('late answer of the aborted one');
  expect(requests.size).toBe(1);
  next.lead.resolve('x');
  expect(requests.size).toBe(0);
});

test('a follower that leaves is rejected at once, the others are not disturbed', async () => {
  const { clients, lead, followers } = joinAll(new InFlightRequests<string>(10), 3);
  clients[1]?.abort('gone');
  await expect(followers[0]?.result).rejects.toBe('gone');
  lead.resolve('answer');
  expect(await endOf(followers[1])).toBe('answer');
});

test('a request with nothing to share sends every follower on alone', async () => {
  const { lead, followers } = joinAll(new InFlightRequests<string>(10), 5);
  lead.resolve(null);
  expect(await endsOf(followers)).toEqual(Array(4).fill(null));
});

test('a failed request is led by one follower after the other, first come first', async () => {
  const requests = new InFlightRequests<string>(10);
  const { clients, lead, followers } = joinAll(requests, 4);
  lead.reject();
  const second = (await followers[0]?.result) as Leader<string>;
  expect([second.kind, second.signal.aborted, requests.size]).toEqual(['leader', false, 1]);
  lead.resolve('too late from one who gave up');
  lead.reject();
  expect(joinAll(requests, 1).followers).toHaveLength(1);
  second.reject();
  const third = (await followers[1]?.result) as Leader<string>;
  third.resolve('answer');
  expect(await endOf(followers[2])).toBe('answer');
  expect(requests.size).toBe(0);
  expect(listenersOf(clients)).toBe(0);
});

test('a failed request that nobody waits for is over', () => {
  const requests = new InFlightRequests<string>(10);
  const { clients, lead } = joinAll(requests, 1);
  lead.reject();
  expect([requests.size, listenersOf(clients), lead.signal.aborted]).toEqual([0, 0, false]);
});

test('a follower that waits no longer goes on alone, and neither holds nor gets the work', async () => {
  const { clients, lead, followers } = joinAll(new InFlightRequests<string>(10), 3);
  followers[0]?.leave();
  expect(await endOf(followers[0])).toBeNull();
  lead.reject();
  expect(await endOf(followers[1])).toBe('the lead');
  clients[2]?.abort('gone');
  expect([lead.signal.aborted, lead.signal.reason]).toEqual([true, 'gone']);
});

test('the work is aborted for the reason of the last client that left', () => {
  const { clients, lead, followers } = joinAll(new InFlightRequests<string>(10), 2);
  clients[0]?.abort('gone');
  followers[0]?.leave();
  expect([lead.signal.aborted, lead.signal.reason]).toEqual([true, 'gone']);
});

test('work that is left by one who came to lead without wanting it has ended for a reason all the same', async () => {
  const { lead, followers } = joinAll(new InFlightRequests<string>(10), 2);
  lead.reject();
  followers[0]?.leave();
  const next = (await followers[0]?.result) as Leader<string>;
  expect([next.signal.aborted, next.signal.reason]).toEqual([true, 'client-gone']);
});

test('the signal of the work is the small one of our own', () => {
  expect(joinAll(new InFlightRequests<string>(10), 1).lead.signal).toBeInstanceOf(Cancellation);
});

test('a client that leaves after the landing changes nothing', async () => {
  const { clients, lead, followers } = joinAll(new InFlightRequests<string>(10), 2);
  lead.resolve('answer');
  lead.resolve('second landing');
  for (const client of clients) client.abort();
  expect(await endOf(followers[0])).toBe('answer');
  expect(lead.signal.aborted).toBe(false);
});

test('a client that has left cannot board', () => {
  expect(() => new InFlightRequests(10).join('k', AbortSignal.abort(new Error('gone')))).toThrow('gone');
});

describe('different keys', () => {
  test('never share', async () => {
    const requests = new InFlightRequests<string>(10);
    const [one, two] = [joinAll(requests, 2, 'user-1'), joinAll(requests, 2, 'user-2')];
    one.lead.resolve('for user 1');
    two.lead.resolve('for user 2');
    expect(await endOf(one.followers[0])).toBe('for user 1');
    expect(await endOf(two.followers[0])).toBe('for user 2');
  });

  test('beyond the limit are not shared, and keep the signal of their client', () => {
    const requests = new InFlightRequests<string>(1);
    joinAll(requests, 1, 'a');
    const { clients, leaders } = joinAll(requests, 2, 'b');
    expect(leaders).toHaveLength(2);
    expect(leaders[0]?.signal).toBe(clients[0]?.signal);
    leaders[0]?.resolve('x');
    expect(requests.size).toBe(1);
  });
});

test('in any order of events: one leader per flight, nothing left over, aborted only when empty', async () => {
  const step = fc.record({
    what: fc.constantFrom('join', 'leave', 'wait no longer', 'resolve', 'reject'),
    pick: fc.nat(9),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const requests = new InFlightRequests<string>(3);
      const inside: { client: AbortController; joined: Joined<string> }[] = [];
      const ends: Promise<unknown>[] = [];
      const join = (): void => {
        const client = new AbortController();
        const member: (typeof inside)[number] = { client, joined: requests.join('k', client.signal) };
        inside.push(member);
        if (member.joined.kind === 'leader') return;
        const lead = (end: FollowerResult<string>): unknown => {
          if (end.kind === 'value') return end.value;
          member.joined = end;
          return 'the lead';
        };
        ends.push(member.joined.result.then(lead, () => 'left'));
      };
      for (const { what, pick } of steps) {
        const chosen = inside[pick % Math.max(inside.length, 1)];
        if (what === 'join') join();
        else if (what === 'leave') chosen?.client.abort();
        else if (chosen?.joined.kind === 'follower') {
          if (what === 'wait no longer') chosen.joined.leave();
        } else if (what === 'resolve') chosen?.joined.resolve('v');
        else if (what === 'reject') chosen?.joined.reject();
        // One who has come to lead knows it.
        await Promise.resolve();
        await Promise.resolve();
        expect(requests.size).toBeLessThanOrEqual(1);
      }
      for (const { client } of inside) client.abort();
      expect(requests.size).toBe(0);
      expect(listenersOf(inside.map(({ client }) => client))).toBe(0);
      for (const end of await Promise.all(ends)) expect(['v', 'left', 'the lead', null]).toContain(end);
    }),
  );
});
