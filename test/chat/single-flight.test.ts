import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FlightSeat, Follow, FollowEnd, Lead } from '../../src/chat/single-flight.ts';
import { SingleFlight } from '../../src/chat/single-flight.ts';

/** What a follower is left with: a value, or the lead. */
const endOf = async (seat: Follow<string> | undefined): Promise<string | null> => {
  const end = await seat?.end;
  return end?.kind === 'value' ? end.value : 'the lead';
};
const endsOf = (seats: readonly Follow<string>[]) => Promise.all(seats.map(endOf));

/** Boards `count` callers of one key, each with a client of its own. */
function boardAll(flights: SingleFlight<string>, count: number, key = 'k') {
  const clients = Array.from({ length: count }, () => new AbortController());
  const seats = clients.map((client) => flights.board(key, client.signal));
  const leaders = seats.filter((seat): seat is Lead<string> => seat.kind === 'lead');
  const followers = seats.filter((seat): seat is Follow<string> => seat.kind === 'follow');
  return { clients, lead: leaders[0] as Lead<string>, leaders, followers };
}

const listenersOf = (clients: readonly AbortController[]): number =>
  clients.reduce((sum, client) => sum + getEventListeners(client.signal, 'abort').length, 0);

test('of 100 callers one works and all have its value', async () => {
  const flights = new SingleFlight<string>(10);
  const { clients, leaders, lead, followers } = boardAll(flights, 100);
  expect(leaders).toHaveLength(1);
  lead.land('answer');
  expect(await endsOf(followers)).toEqual(Array(99).fill('answer'));
  expect(flights.size).toBe(0);
  expect(listenersOf(clients)).toBe(0);
});

test('the work goes on for 99 when the one who began it leaves', async () => {
  const { clients, lead, followers } = boardAll(new SingleFlight<string>(10), 100);
  clients[0]?.abort();
  expect(lead.signal.aborted).toBe(false);
  lead.land('answer');
  expect(await endsOf(followers)).toEqual(Array(99).fill('answer'));
});

test('the work is aborted when the last one leaves, and not before', async () => {
  const flights = new SingleFlight<string>(10);
  const { clients, lead, followers } = boardAll(flights, 100);
  const left = followers.map((seat) => seat.end.catch((reason: unknown) => reason));
  for (const client of clients) {
    expect(lead.signal.aborted).toBe(false);
    client.abort('gone');
  }
  expect(lead.signal.aborted).toBe(true);
  expect(await Promise.all(left)).toEqual(Array(99).fill('gone'));
  expect(flights.size).toBe(0);
  expect(listenersOf(clients)).toBe(0);
});

test('a newcomer after everybody left leads a flight of its own', () => {
  const flights = new SingleFlight<string>(10);
  const { clients, lead } = boardAll(flights, 1);
  clients[0]?.abort();
  const next = boardAll(flights, 1);
  expect(next.leaders).toHaveLength(1);
  lead.land('late answer of the aborted one');
  expect(flights.size).toBe(1);
  next.lead.land('x');
  expect(flights.size).toBe(0);
});

test('a follower that leaves is rejected at once, the others are not disturbed', async () => {
  const { clients, lead, followers } = boardAll(new SingleFlight<string>(10), 3);
  clients[1]?.abort('gone');
  await expect(followers[0]?.end).rejects.toBe('gone');
  lead.land('answer');
  expect(await endOf(followers[1])).toBe('answer');
});

test('a flight with nothing to share sends every follower on alone', async () => {
  const { lead, followers } = boardAll(new SingleFlight<string>(10), 5);
  lead.land(null);
  expect(await endsOf(followers)).toEqual(Array(4).fill(null));
});

test('a failed flight is led by one follower after the other, first come first', async () => {
  const flights = new SingleFlight<string>(10);
  const { clients, lead, followers } = boardAll(flights, 4);
  lead.fail();
  const second = (await followers[0]?.end) as Lead<string>;
  expect([second.kind, second.signal.aborted, flights.size]).toEqual(['lead', false, 1]);
  lead.land('too late from one who gave up');
  lead.fail();
  expect(boardAll(flights, 1).followers).toHaveLength(1);
  second.fail();
  const third = (await followers[1]?.end) as Lead<string>;
  third.land('answer');
  expect(await endOf(followers[2])).toBe('answer');
  expect(flights.size).toBe(0);
  expect(listenersOf(clients)).toBe(0);
});

test('a failed flight that nobody waits for is over', () => {
  const flights = new SingleFlight<string>(10);
  const { clients, lead } = boardAll(flights, 1);
  lead.fail();
  expect([flights.size, listenersOf(clients), lead.signal.aborted]).toEqual([0, 0, false]);
});

test('a follower that waits no longer goes on alone, and neither holds nor gets the work', async () => {
  const { clients, lead, followers } = boardAll(new SingleFlight<string>(10), 3);
  followers[0]?.leave();
  expect(await endOf(followers[0])).toBeNull();
  lead.fail();
  expect(await endOf(followers[1])).toBe('the lead');
  clients[2]?.abort('gone');
  expect([lead.signal.aborted, lead.signal.reason]).toEqual([true, 'gone']);
});

test('the work is aborted for the reason of the last client that left', () => {
  const { clients, lead, followers } = boardAll(new SingleFlight<string>(10), 2);
  clients[0]?.abort('gone');
  followers[0]?.leave();
  expect([lead.signal.aborted, lead.signal.reason]).toEqual([true, 'gone']);
});

test('a client that leaves after the landing changes nothing', async () => {
  const { clients, lead, followers } = boardAll(new SingleFlight<string>(10), 2);
  lead.land('answer');
  lead.land('second landing');
  for (const client of clients) client.abort();
  expect(await endOf(followers[0])).toBe('answer');
  expect(lead.signal.aborted).toBe(false);
});

test('a client that has left cannot board', () => {
  expect(() => new SingleFlight(10).board('k', AbortSignal.abort(new Error('gone')))).toThrow('gone');
});

describe('different keys', () => {
  test('never share', async () => {
    const flights = new SingleFlight<string>(10);
    const [one, two] = [boardAll(flights, 2, 'user-1'), boardAll(flights, 2, 'user-2')];
    one.lead.land('for user 1');
    two.lead.land('for user 2');
    expect(await endOf(one.followers[0])).toBe('for user 1');
    expect(await endOf(two.followers[0])).toBe('for user 2');
  });

  test('beyond the limit are not shared, and keep the signal of their client', () => {
    const flights = new SingleFlight<string>(1);
    boardAll(flights, 1, 'a');
    const { clients, leaders } = boardAll(flights, 2, 'b');
    expect(leaders).toHaveLength(2);
    expect(leaders[0]?.signal).toBe(clients[0]?.signal);
    leaders[0]?.land('x');
    expect(flights.size).toBe(1);
  });
});

test('in any order of events: one leader per flight, nothing left over, aborted only when empty', async () => {
  const step = fc.record({
    what: fc.constantFrom('board', 'leave', 'wait no longer', 'land', 'fail'),
    pick: fc.nat(9),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const flights = new SingleFlight<string>(3);
      const inside: { client: AbortController; seat: FlightSeat<string> }[] = [];
      const ends: Promise<unknown>[] = [];
      const board = (): void => {
        const client = new AbortController();
        const boarded: (typeof inside)[number] = { client, seat: flights.board('k', client.signal) };
        inside.push(boarded);
        if (boarded.seat.kind === 'lead') return;
        const lead = (end: FollowEnd<string>): unknown => {
          if (end.kind === 'value') return end.value;
          boarded.seat = end;
          return 'the lead';
        };
        ends.push(boarded.seat.end.then(lead, () => 'left'));
      };
      for (const { what, pick } of steps) {
        const chosen = inside[pick % Math.max(inside.length, 1)];
        if (what === 'board') board();
        else if (what === 'leave') chosen?.client.abort();
        else if (chosen?.seat.kind === 'follow') {
          if (what === 'wait no longer') chosen.seat.leave();
        } else if (what === 'land') chosen?.seat.land('v');
        else if (what === 'fail') chosen?.seat.fail();
        // One who has come to lead knows it.
        await Promise.resolve();
        await Promise.resolve();
        expect(flights.size).toBeLessThanOrEqual(1);
      }
      for (const { client } of inside) client.abort();
      expect(flights.size).toBe(0);
      expect(listenersOf(inside.map(({ client }) => client))).toBe(0);
      for (const end of await Promise.all(ends)) expect(['v', 'left', 'the lead', null]).toContain(end);
    }),
  );
});
