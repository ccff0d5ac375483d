import { expect, test } from 'vitest';
import { LaterTurns } from '../../../src/chat/later-turn.ts';
import { listedRow, writtenInTurns } from '../../../src/http/routes/logs.ts';

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
    run: (steps, done) =>
      later.run(
        {
          next: () => {
            seen += 1;
            return steps.next();
          },
        },
        done,
      ),
  });

  expect(answer).toBe(page);
  expect(String(written)).toBe(JSON.stringify(page));
  expect(seen).toBe(turns);
});
