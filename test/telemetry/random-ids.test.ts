import { isValidSpanId, isValidTraceId } from '@opentelemetry/api';
import { expect, test } from 'vitest';
import { RandomIds } from '../../src/telemetry/random-ids.ts';

test('ids of traces and spans are valid, and no two are the same, however many are asked for and in which order', () => {
  const ids = new RandomIds();
  const rounds = 5_000;
  const traces = Array.from({ length: rounds }, (_, round) => {
    const [first, id] = [ids.generateSpanId(), ids.generateTraceId()];
    const spans = [first, ...Array.from({ length: round % 3 }, ids.generateSpanId)];
    return { id, spans };
  });
  const spans = traces.flatMap(({ spans: own }) => own);
  expect(traces.filter(({ id }) => !isValidTraceId(id))).toEqual([]);
  expect(spans.filter((id) => !isValidSpanId(id))).toEqual([]);
  expect(new Set(traces.map(({ id }) => id)).size).toBe(rounds);
  expect(new Set(spans).size).toBe(spans.length);
});
