/** What `npm run bench` found stands in docs/performance.md; whoever repeats a figure repeats the newest. */
import { describe, expect, test } from 'vitest';
import { fewestPods, gatewayMicros, podUse } from '../harness/scale/capacity.ts';
import { filesBelow, readDocument, tableRows } from './documents.ts';
import { measuredFigures } from './measured-figures.ts';

const found = measuredFigures();
const { date, machine, requestMicros, eventMicros, mebibytes } = found;

/** Half a digit goes up, as by hand: 1.25 is 1.3. */
const oneDigit = (ratio: number): string => (Math.round(ratio * 10) / 10).toFixed(1);
const ratios = `${oneDigit(found.requestRatio)} | ${oneDigit(found.eventRatio)}`;
const ours = `| ${ratios} | ${mebibytes} |`;

/** Wherever its lines are broken. */
const flowing = (path: string): string => readDocument(path).replaceAll(/\s+/g, ' ');

test('the formula of docs/scale.md reckons with them', () => {
  const edit =
    'edit gatewayMicros in test/harness/scale/capacity.ts, then the rows that test/chart/capacity.test.ts names';
  expect(gatewayMicros, edit).toEqual({ request: requestMicros, event: eventMicros });
});

test.each([
  ['README.md', `| Model Gateway, all duties on ${ours} ${date}, [performance](docs/performance.md) |`],
  [
    'docs/comparison.md',
    `a row in Postgres, metrics, access line ${ours} [${date}](performance.md), Node 24 |`,
  ],
  ['docs/comparison.md', `| bare Fastify | 1 | 1 | 36, ${found.floorMebibytes} | both |`],
  ['docs/comparison.md', `(theirs: AMD EPYC, ours: ${machine.replace(/^\d+ × /, '')}; loopback)`],
  [
    'docs/sizing.md',
    `The examples take those of ${date} (${machine}): ${requestMicros} µs a JSON request with TLS to the vendor, ${eventMicros} µs an event that comes alone, ${mebibytes} MiB for 1,000 open streams.`,
  ],
  ['docs/scale.md', `at ${requestMicros} µs a JSON request with TLS to the vendor;`],
  [
    'docs/scale.md',
    `events of ${eventMicros} µs, each alone in its read ([performance.md](performance.md), ${date}, ${machine}).`,
  ],
  ['docs/scale.md', `Memory of open streams comes on top: ${mebibytes} MiB for 1,000.`],
])('%s says: %s', (path, said) => {
  expect(
    flowing(path).includes(said),
    `docs/performance.md has newer figures: edit ${path} to say\n  ${said}`,
  ).toBe(true);
});

describe('what a core carries in docs/sizing.md', () => {
  const secondOf = (micros: number): number => Math.round(1e5 / micros) * 10;
  const rows = tableRows(readDocument('docs/sizing.md'), 'one core of gateway', 'busy all the time');
  const expected: readonly (readonly [what: string, most: number])[] = [
    ['JSON requests/s', secondOf(requestMicros)],
    ['open streams of 20 events/s', secondOf(20 * eventMicros)],
  ];

  test.each(expected)('%s: at most %d', (what, most) => {
    const shown = [most, Math.round((most * podUse) / 10) * 10].map((count) => count.toLocaleString('en-US'));
    const right = [what, ...shown];
    expect(rows, `docs/sizing.md: | ${right.join(' | ')} |`).toContainEqual(right);
  });
});

describe('the table of loads in docs/sizing.md', () => {
  const loads = tableRows(readDocument('docs/sizing.md'), 'load', 'cores');
  const load = /^(?<count>[\d,]+) (?:JSON requests\/s|streams of (?<events>\d+) events\/s)$/;
  /** A quarter of a core, of which the autoscaler wants 70 % to be in use. */
  const defaultPodCores = 0.25 * 0.7;
  const mostDefaultPods = 10;

  test.each(loads)('%s take what the formula above says', (text, ...said) => {
    const { count = '', events } = load.exec(text)?.groups ?? {};
    const each = events === undefined ? requestMicros : Number(events) * eventMicros;
    const micros = Number(count.replaceAll(',', '')) * each;
    const podsOf = (cores: number): number => Math.max(fewestPods, Math.ceil(micros / (cores * 1e6)));
    const defaults = podsOf(defaultPodCores);
    const right = [
      String(Math.round(micros / 1e4) / 100),
      defaults > mostDefaultPods ? `beyond ${mostDefaultPods}` : String(defaults),
      String(podsOf(podUse)),
    ];
    // What follows is said in words.
    const shown = said.map((cell, index) => cell.slice(0, right[index]?.length));
    expect(shown, `docs/sizing.md: | ${text} | ${right.join(' | ')} |`).toEqual(right);
  });

  test('has loads of both kinds', () => {
    expect(loads.map(([text = '']) => load.exec(text)?.groups?.['events'])).toContain('20');
    expect(loads.length).toBeGreaterThan(2);
  });
});

test('the parts of docs/performance.md have the names by which test/bench measures them', () => {
  const benches = filesBelow('test/bench', '.bench.ts').map(readDocument).join('\n');
  const parts = tableRows(readDocument('docs/performance.md'), 'part', 'against').map(([name = '']) => name);
  expect(parts.length).toBeGreaterThan(8);
  expect(parts.filter((name) => !benches.includes(`'${name}'`))).toEqual([]);
});
