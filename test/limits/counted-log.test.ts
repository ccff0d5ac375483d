import { expect, test } from 'vitest';
import type { SettledRequest } from '../../src/core/settled-request.ts';
import { countedBy } from '../../src/limits/counted-log.ts';

test('a row is on its way before it is counted, so that nothing that goes wrong there loses it', () => {
  const recorded: SettledRequest[] = [];
  const settled = { rowId: 'row' } as SettledRequest;
  const bug = (): never => {
    throw new Error('a bug in counting');
  };
  const log = countedBy(
    { settled: bug },
    { record: async (row) => void recorded.push(row), accepting: () => true },
  );

  expect(() => log.record(settled)).toThrow('a bug in counting');
  expect(recorded).toEqual([settled]);
});
