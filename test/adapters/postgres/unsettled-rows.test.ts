import { describe, expect, test } from 'vitest';
import type { RowPlace, RowState } from '../../../src/adapters/postgres/unsettled-rows.ts';
import { PendingRow, UnsettledRows } from '../../../src/adapters/postgres/unsettled-rows.ts';
import { Random } from '../../harness/measure/random.ts';
import { logRow as settledRow } from './log-rows.ts';

const logRow = { settled: settledRow(), isOther: false };
const places: readonly RowPlace[] = ['committed', 'spooled', 'dropped'];
const states: readonly RowState[] = ['waiting', 'spooling', ...places];
const legal: Readonly<Record<RowState, readonly RowState[]>> = {
  waiting: ['spooling', 'committed', 'dropped'],
  spooling: ['waiting', 'committed', 'spooled'],
  committed: [],
  spooled: [],
  dropped: [],
};

/** A row in this state, and how often it let its request go on. */
function rowIn(state: RowState): { row: PendingRow; resolved: () => number } {
  let resolved = 0;
  const row = new PendingRow(logRow, 0, 50, () => {
    resolved += 1;
  });
  if (state === 'spooling' || state === 'spooled') row.to('spooling');
  if (state !== row.state) row.to(state);
  return { row, resolved: () => resolved };
}

describe('a row', () => {
  test.each(states.flatMap((from) => states.map((to) => [from, to] as const)))('%s to %s', (from, to) => {
    const { row, resolved } = rowIn(from);
    if (legal[from].includes(to)) {
      row.to(to);
      expect(row.state).toBe(to);
      expect(resolved()).toBe(legal[to].length === 0 ? 1 : 0);
    } else {
      expect(() => row.to(to)).toThrow(`a ${from} log row cannot become ${to}`);
      expect(row.state).toBe(from);
    }
  });
});

test('rows stay in the order of their arrival, whichever settle; each is counted once', () => {
  const random = new Random(7);
  const rows = new UnsettledRows();
  const model: PendingRow[] = [];
  let nowMs = 0;
  for (let step = 0; step < 5_000; step += 1) {
    nowMs += random.below(3);
    if (random.chance(0.52)) {
      const row = new PendingRow(logRow, nowMs, nowMs, () => {});
      rows.add(row);
      model.push(row);
    } else if (model.length > 0) {
      const [row] = model.splice(random.below(model.length), 1) as [PendingRow];
      const place = places[random.below(places.length)] as RowPlace;
      if (place === 'spooled') row.to('spooling');
      expect(rows.settle(row, place)).toBe(true);
      expect(rows.settle(row, 'committed')).toBe(false);
      expect([row.older, row.newer]).toEqual([null, null]);
    }
    expect(rows.oldest).toBe(model[0] ?? null);
    expect(rows.waiting).toBe(model.length);
    const { committed, spooled, dropped } = rows.settled;
    expect(rows.accepted).toBe(committed + spooled + dropped + rows.waiting);
  }
  expect(rows.all()).toEqual(model);
  const late = model.filter(({ enteredAtMs }) => enteredAtMs <= nowMs - 50);
  expect(rows.overdue(nowMs - 50)).toEqual({ rows: late, next: model[late.length] ?? null });
});
