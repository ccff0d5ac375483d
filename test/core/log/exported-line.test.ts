import { expect, test } from 'vitest';
import type { ExportedRow } from '../../../src/core/log/exported-line.ts';
import { exportedLine } from '../../../src/core/log/exported-line.ts';
import { exportColumns } from '../../../src/core/log/log-columns.ts';

const row = {
  ...Object.fromEntries(exportColumns.map((name) => [name, null])),
  id: 7n,
  created_micros: 1_795_168_800_000_001n,
  cost_micro_usd: 1_250n,
  saved_micro_usd: 0n,
} as unknown as ExportedRow;

test('a line has its columns in an order that spreadsheets can rest on', () => {
  expect(Object.keys(exportedLine(row))).toEqual([
    ...[
      'created_at',
      'id',
      'user_id',
      'request_id',
      'mode',
      'provider',
      'model',
      'key_id',
      'status',
      'error',
    ],
    ...[
      'residency_requested',
      'residency_bound_by',
      'residency_actual',
      'stream',
      'cache_hit',
      'usage_basis',
    ],
    ...['input_tokens', 'output_tokens', 'cached_input_tokens', 'cache_write_tokens'],
    ...['cache_write_long_tokens', 'reasoning_tokens', 'latency_ms', 'ttft_ms', 'tables_version', 'trace_id'],
    ...['cost_usd', 'saved_usd'],
  ]);
});

test('ids are numbers, times and amounts are texts', () => {
  expect(exportedLine(row)).toMatchObject({
    id: 7,
    created_at: '2026-11-20T10:00:00.000001Z',
    cost_usd: '0.001250',
    saved_usd: '0.000000',
  });
});
