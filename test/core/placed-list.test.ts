import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PlacedList } from '../../src/core/placed-list.ts';

test('holds what came in and did not leave, whatever the order, and each at the place it knows', () => {
  const steps = fc.array(fc.record({ enters: fc.boolean(), which: fc.nat(8) }), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (moves) => {
      const all = Array.from({ length: 9 }, () => ({ place: -1 }));
      const inside = new Set<{ place: number }>();
      const list = new PlacedList<{ place: number }>();
      for (const { enters, which } of moves) {
        const entry = all[which] as { place: number };
        if (!enters) {
          list.remove(entry);
          inside.delete(entry);
        } else if (!inside.has(entry)) {
          list.add(entry);
          inside.add(entry);
        }
        expect(list.length).toBe(inside.size);
        expect(new Set(list.entries)).toEqual(inside);
        for (const one of all) expect(list.entries[one.place]).toBe(inside.has(one) ? one : undefined);
      }
    }),
  );
});
