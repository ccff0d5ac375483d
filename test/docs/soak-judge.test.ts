/** The judge of `npm run soak` must see what it is there to see. */
import { describe, expect, test } from 'vitest';
import type { Sample } from '../harness/soak/judge.ts';
import { compareRows, drifts } from '../harness/soak/judge.ts';
import type { Ended } from '../harness/soak/requests.ts';
import { kindOf, kinds } from '../harness/soak/requests.ts';

const mebibyte = 1024 * 1024;

/** Twenty looks; `rssMiB` says what each saw. */
function looks(rssMiB: (index: number) => number): Sample[] {
  return Array.from({ length: 20 }, (_, index) => ({
    minute: index,
    requests: index,
    rss: rssMiB(index) * mebibyte,
    anonymous: 0,
    heapUsed: 40 * mebibyte,
    heapTotal: 0,
    external: 0,
    handles: 10,
  }));
}

const tooMuch = (samples: Sample[]) =>
  drifts(samples)
    .filter(({ isTooMuch }) => isTooMuch)
    .map(({ what }) => what);

describe('memory', () => {
  test.each<[string, (index: number) => number, string[]]>([
    ['that stays', () => 200, []],
    ['that shrinks', (index) => 200 - index, []],
    ['that grows in the first quarter only', (index) => 200 + 10 * Math.min(index, 5), []],
    ['that jumps once for a moment', (index) => (index === 18 ? 260 : 200), []],
    ['that grows by 6 % afterwards', (index) => (index < 12 ? 200 : 212), ['RSS']],
    ['that grows with every request', (index) => 200 + 2 * index, ['RSS']],
  ])('%s is judged by its growth after the first quarter', (_name, rssMiB, expected) => {
    expect(tooMuch(looks(rssMiB))).toEqual(expected);
  });

  test('of a run that has no look is no success', () => {
    expect(tooMuch([])).toEqual(['RSS', 'heap']);
  });
});

describe('rows', () => {
  const ended: Ended[] = [
    { id: 'served', kind: 'JSON', status: 200, whole: true },
    { id: 'failed', kind: 'vendor 500', status: 502, whole: true },
    { id: 'left', kind: 'client leaves early', status: null, whole: false },
    { id: 'refused', kind: 'refused body', status: 422, whole: true },
  ];

  test('of whole answers are there once; others need none', () => {
    expect(compareRows(ended, ['served', 'failed'])).toEqual({ missing: [], doubled: [] });
    expect(compareRows(ended, ['served', 'failed', 'left'])).toEqual({ missing: [], doubled: [] });
  });

  test('that are missing or double are found', () => {
    expect(compareRows(ended, ['failed', 'left', 'left'])).toEqual({
      missing: ['served'],
      doubled: ['left'],
    });
  });
});

test('each hundred requests hold every kind by its share', () => {
  const names = Array.from({ length: 100 }, (_, index) => kindOf(index).name);
  for (const { name, share } of kinds) expect(names.filter((one) => one === name).length, name).toBe(share);
});
