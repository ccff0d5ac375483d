/** The judge of `npm run soak` must see what it is there to see. */
import { describe, expect, test } from 'vitest';
import { failOverOf } from '../harness/soak/fail-overs.ts';
import type { Sample } from '../harness/soak/judge.ts';
import {
  compareRows,
  drifts,
  flatness,
  latencyOf,
  miscounted,
  unexpectedEnds,
} from '../harness/soak/judge.ts';
import type { Ended } from '../harness/soak/requests.ts';
import { kindOf, kinds } from '../harness/soak/requests.ts';

const mebibyte = 1024 * 1024;

/** Twenty looks; `rssMiB` and `p99Ms` say what each saw. */
function looks(rssMiB: (index: number) => number, p99Ms: (index: number) => number = () => 10): Sample[] {
  return Array.from({ length: 20 }, (_, index) => ({
    minute: index,
    requests: index,
    rss: rssMiB(index) * mebibyte,
    anonymous: 0,
    heapUsed: 40 * mebibyte,
    heapTotal: 0,
    external: 0,
    handles: 10,
    latency: { p50Ms: 3, p99Ms: p99Ms(index) },
    failedOver: failOverOf(index),
    heldUp: 0.01,
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

describe('latency', () => {
  const answer = (tookMs: number, kind = 'JSON', status = 200): Ended => ({
    id: `${kind} ${tookMs}`,
    kind,
    status,
    whole: true,
    tookMs,
  });

  test('is that of plain answers alone', () => {
    const plain = Array.from({ length: 200 }, (_, index) => answer(index + 1));
    const others = [answer(9_000, 'vendor hangs'), answer(9_000, 'JSON', 503)];
    expect(latencyOf([...others, ...plain])).toEqual({ p50Ms: 100, p99Ms: 198 });
  });

  test.each<[string, (index: number) => number, boolean]>([
    ['that stays', () => 10, true],
    ['that jumps in one round', (index) => (index === 19 ? 500 : 10), true],
    ['that is high in the warm-up only', (index) => (index < 5 ? 80 : 10), true],
    ['that is high while a store fails over', (index) => (failOverOf(index) === null ? 10 : 900), true],
    ['that is 20 and was 10', (index) => (index < 12 ? 10 : 20), true],
    ['that is 21 and was 10', (index) => (index < 12 ? 10 : 21), false],
    ['that grows with every round', (index) => 10 + 2 * index, false],
    ['of which nothing is known', () => Number.NaN, false],
  ])('%s is judged by the last third after the warm-up', (_name, p99Ms, isFlat) => {
    expect(flatness(looks(() => 200, p99Ms)).isFlat).toBe(isFlat);
  });

  test('of rounds in which others had the cores is none of the gateway', () => {
    const slow = looks(
      () => 200,
      (index) => (index === 15 || index === 17 ? 300 : 10),
    );
    const crowded = (sample: Sample) => ({ ...sample, heldUp: sample.latency.p99Ms > 100 ? 0.2 : 0.01 });
    expect(flatness(slow).isFlat).toBe(false);
    expect(flatness(slow.map(crowded))).toEqual({ fromMs: 10, toMs: 10, isFlat: true });
    expect(flatness(slow.map((sample) => ({ ...sample, heldUp: 0.2 }))).isFlat).toBe(false);
  });

  test('of a run that has no look is no success', () => {
    expect(flatness([]).isFlat).toBe(false);
  });
});

test('both stores fail over in the warm-up, and most rounds after it are judged for latency', () => {
  const rounds = Array.from({ length: 20 }, (_, round) => failOverOf(round));
  expect(rounds.slice(0, 5)).toEqual(expect.arrayContaining(['Postgres', 'Redis']));
  expect(rounds.slice(5).filter((store) => store === null)).toHaveLength(9);
});

describe('ends', () => {
  const ended = (kind: string, status: number | null, whole = true): Ended => ({
    id: 'one',
    kind,
    status,
    whole,
    tookMs: 7,
  });

  test('that are right for their kind are none of its business', () => {
    const right = [
      ended('JSON', 200),
      ended('vendor cuts stream', 200, false),
      ended('refused body', 422),
      ended('client leaves early', null, false),
      ended('key is revoked', 200),
      ended('key is revoked', 401),
      ended('revoked key', 401),
    ];
    expect(unexpectedEnds(right)).toEqual([]);
  });

  test.each([
    [ended('JSON', 503), 'one JSON: 503 after 7 ms'],
    [ended('JSON', null, false), 'one JSON: none (cut) after 7 ms'],
    [ended('stream', 200, false), 'one stream: 200 (cut) after 7 ms'],
    [ended('revoked key', 200), 'one revoked key: 200 after 7 ms'],
    [ended('provider keys change', 422), 'one provider keys change: 422 after 7 ms'],
    [ended('of no such kind', 200), 'one of no such kind: 200 after 7 ms'],
  ])('that are not are told: %o', (one, told) => {
    expect(unexpectedEnds([one])).toEqual([told]);
    const rows = [{ id: 'one', attempts: 1, error: 'the vendor stalled' }];
    expect(unexpectedEnds([one], rows)).toEqual([`${told} the vendor stalled`]);
  });
});

describe('calls of vendors', () => {
  const ended: Ended[] = [
    { id: 'served', kind: 'JSON', status: 200, whole: true, tookMs: 1 },
    { id: 'second', kind: 'vendor 500', status: 200, whole: true, tookMs: 1 },
    { id: 'stored', kind: 'cached', status: 200, whole: true, tookMs: 1 },
    { id: 'left', kind: 'client leaves early', status: null, whole: false, tookMs: 1 },
  ];
  const rows = [
    { id: 'served', attempts: 1 },
    { id: 'second', attempts: 2 },
    { id: 'stored', attempts: 0 },
    { id: 'left', attempts: 1 },
  ];

  test('may lack where the time of an attempt was up before', () => {
    const calls = new Map([
      ['served', 1],
      ['second', 1],
    ]);
    expect(miscounted(ended, rows, calls)).toEqual([]);
  });

  test('are as many as the attempts of their rows', () => {
    const calls = new Map([
      ['served', 1],
      ['second', 2],
    ]);
    expect(miscounted(ended, rows, calls)).toEqual([]);
  });

  test('that were made twice, or never, are found', () => {
    expect(miscounted(ended, rows, new Map([['served', 2]]))).toEqual([
      'served: 1 attempts in the row, 2 calls',
      'second: 2 attempts in the row, 0 calls',
    ]);
  });
});

describe('rows', () => {
  const ended: Ended[] = [
    { id: 'served', kind: 'JSON', status: 200, whole: true, tookMs: 1 },
    { id: 'failed', kind: 'vendor 500', status: 502, whole: true, tookMs: 1 },
    { id: 'left', kind: 'client leaves early', status: null, whole: false, tookMs: 1 },
    { id: 'refused', kind: 'refused body', status: 422, whole: true, tookMs: 1 },
  ];
  const rowsOf = (...ids: string[]) => ids.map((id) => ({ id }));

  test('of whole answers are there once; others need none', () => {
    expect(compareRows(ended, rowsOf('served', 'failed'))).toEqual({ missing: [], doubled: [] });
    expect(compareRows(ended, rowsOf('served', 'failed', 'left'))).toEqual({ missing: [], doubled: [] });
  });

  test('that are missing or double are found', () => {
    expect(compareRows(ended, rowsOf('failed', 'left', 'left'))).toEqual({
      missing: ['served'],
      doubled: ['left'],
    });
  });
});

test('each hundred requests hold every kind by its share', () => {
  const names = Array.from({ length: 100 }, (_, index) => kindOf(index).name);
  for (const { name, share } of kinds) expect(names.filter((one) => one === name).length, name).toBe(share);
});
