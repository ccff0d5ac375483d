import { isValidSpanId, isValidTraceId } from '@opentelemetry/api';
import { expect, test } from 'vitest';
import { foldOf } from '../../src/telemetry/head-sampler.ts';
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

test('a drawn trace is told by the same fold as its id, which holds until the next id is drawn', () => {
  const ids = new RandomIds();
  const rounds = 2_000;
  const drawn = Array.from({ length: rounds }, () => {
    const fold = ids.drawTrace();
    const id = ids.drawnTraceId();
    return { fold, id, next: ids.generateSpanId() };
  });
  expect(drawn.filter(({ fold, id }) => !isValidTraceId(id) || foldOf(id) !== fold)).toEqual([]);
  expect(new Set(drawn.map(({ id }) => id)).size).toBe(rounds);
});
