import { expect, onTestFinished, test } from 'vitest';
import { LaterTurns } from '../../../src/chat/later-turn.ts';
import { listedRow, writtenInTurns } from '../../../src/http/routes/logs.ts';
import { head, startEdge } from '../edge.ts';

type Row = Parameters<typeof listedRow>[0];

const row = (id: number): Row => ({
  ...{ id: BigInt(id), created_micros: 1_764_160_000_000_000n },
  ...{ mode: 'gw/cheap', provider: 'openai', model: `模 "${id}"`, input_tokens: 1, output_tokens: 2 },
  ...{ latency_ms: 3, cost_micro_usd: 4n, cache_hit: false, status: 'error', error: 'ü\n' },
  ...{ residency_requested: null, residency_actual: 'global' },
});

test.each([
  { rows: 0, turns: 0 },
  { rows: 1, turns: 0 },
  { rows: 100, turns: 0 },
  { rows: 101, turns: 3 },
  { rows: 1000, turns: 11 },
])('a page of $rows rows is written in $turns turns, and as it would be in one', async ({ rows, turns }) => {
  const page = { data: Array.from({ length: rows }, (_, id) => listedRow(row(id))), next_cursor: 'c"' };
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
    const page = { data: Array.from({ length: rows }, (_, id) => listedRow(row(id))), next_cursor: null };
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
