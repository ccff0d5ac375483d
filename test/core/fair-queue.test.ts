import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FairQueue } from '../../src/core/fair-queue.ts';

test('owners take turns, each with its oldest', () => {
  const queue = new FairQueue<string>();
  for (const item of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) queue.add(item.charAt(0), item);
  expect(queue.remove('b', 'b1')).toBe(true);
  expect(queue.remove('b', 'b1')).toBe(false);
  const taken = Array.from({ length: 6 }, () => queue.take());
  expect(taken).toEqual(['a1', 'b2', 'c1', 'a2', 'a3', null]);
});

test('whoever comes is next but for one of each other owner, and nobody is lost', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(5), { maxLength: 50 }), (owners) => {
      const queue = new FairQueue<number>();
      for (const [item, owner] of owners.entries()) queue.add(String(owner), item);
      queue.add('late', -1);
      const order = Array.from({ length: owners.length + 1 }, () => queue.take());
      expect(order.indexOf(-1)).toBe(new Set(owners).size);
      expect(order.toSorted()).toEqual([...owners.keys(), -1].toSorted());
      expect(queue.take()).toBeNull();
    }),
  );
});
