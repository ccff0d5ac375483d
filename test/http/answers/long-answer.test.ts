import { expect, onTestFinished, test } from 'vitest';
import { LaterTurns } from '../../../src/chat/later-turn.ts';
import { writtenInTurns } from '../../../src/http/answers/long-answer.ts';
import { listedRow } from '../../../src/http/routes/logs.ts';
import { head, startEdge } from '../edge.ts';

type Row = Parameters<typeof listedRow>[0];

const row = (id: number): Row => ({
  ...{ id: BigInt(id), created_micros: 1_764_160_000_000_000n },
  ...{ mode: 'gw/cheap', provider: 'openai', model: `模 "${id}"`, input_tokens: 1, output_tokens: 2 },
  ...{ latency_ms: 3, cost_micro_usd: 4n, cache_hit: false, status: 'error', error: 'ü\n' },
  ...{ residency_requested: null, residency_actual: 'global' },
});

const rowsOf = (count: number) => Array.from({ length: count }, (_, id) => listedRow(row(id)));

test.each([
  { what: 'a page without rows', page: { data: [], next_cursor: null }, turns: 0 },
  { what: 'a page of one row', page: { data: rowsOf(1), next_cursor: 'c"' }, turns: 0 },
  { what: 'a page of 100 rows', page: { data: rowsOf(100), next_cursor: 'c"' }, turns: 0 },
  { what: 'a page of 101 rows', page: { data: rowsOf(101), next_cursor: 'c"' }, turns: 3 },
  { what: 'a page of 1000 rows', page: { data: rowsOf(1000), next_cursor: 'c"' }, turns: 11 },
  {
    what: 'a list behind others',
    page: { totals: { n: 1 }, names: ['a', 'b'], groups: rowsOf(250) },
    turns: 4,
  },
])('$what is written in $turns turns, and as it would be in one', async ({ page, turns }) => {
  const later = new LaterTurns();
  let seen = 0;
  let written: unknown = JSON.stringify(page);
  const reply = {
    serializer: (write: () => string) => {
      written = write();
    },
  };

  const answer = await writtenInTurns(page, reply, {
    run: (steps) =>
      later.run({
        next: () => {
          seen += 1;
          return steps.next();
        },
      }),
  });

  expect(answer).toBe(page);
  expect(String(written)).toBe(JSON.stringify(page));
  expect(seen).toBe(turns);
});

test.each([
  { what: 'a short page', rows: 100, at: 0 },
  { what: 'the first part of a long page', rows: 300, at: 0 },
  { what: 'a later part of a long page', rows: 300, at: 250 },
])(
  'a bug in the writing of $what is a 500 of its request, and the next one is served',
  async ({ rows, at }) => {
    const page = { data: rowsOf(rows), next_cursor: null };
    // JSON has no word for it.
    const faulty = { ...page, data: page.data.with(at, { ...listedRow(row(at)), id: 1n as never }) };
    const later = new LaterTurns();
    const edge = await startEdge((scope) => {
      scope.get('/whole', (_request, reply) => writtenInTurns(page, reply, later));
      scope.get('/faulty', (_request, reply) => writtenInTurns(faulty, reply, later));
    });
    onTestFinished(() => edge.close());

    const faults = edge.connect(head({}, 'GET /faulty'), head({ connection: 'close' }, 'GET /faulty')).read();
    const whole = edge.connect(head({ connection: 'close' }, 'GET /whole')).read();
    await Promise.all([faults.closed, whole.closed]);

    expect(faults.text.match(/HTTP.{4} \d+|"code":"\w+"/g)).toEqual([
      ...['HTTP/1.1 500', '"code":"internal_error"'],
      ...['HTTP/1.1 500', '"code":"internal_error"'],
    ]);
    expect(edge.logged).toHaveLength(2);
    expect(whole.text).toContain('HTTP/1.1 200 OK');
  },
);
