/** What waits for a collector, and for how long. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RecordedSpan } from '../../src/telemetry/recorded-span.ts';
import type { BatchLimits, SpanBatch, SpanSink } from '../../src/telemetry/span-batches.ts';
import { SpanBatches } from '../../src/telemetry/span-batches.ts';
import type { SpanOrigin } from '../../src/telemetry/span-bytes.ts';

const limits: BatchLimits = {
  maxQueueSize: 100,
  maxExportBatchSize: 10,
  scheduleDelayMs: 5_000,
  exportTimeoutMs: 30_000,
};

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Promises that have nothing to wait for. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

const context = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 };
const plainOrigin: SpanOrigin = { resource: { attributes: {} }, scope: { name: 'test' } };

/** A collector that answers when it is told to. */
function pipeline(origin: SpanOrigin = plainOrigin) {
  const exported: { readonly size: number; readonly batch: SpanBatch; done(error?: Error): void }[] = [];
  let isShutDown = false;
  const sink: SpanSink = {
    export: (batch, done) => {
      const finish = (error?: Error) => done(error === undefined ? {} : { error });
      exported.push({ size: batch.count, batch, done: finish });
    },
    shutdown: async () => {
      isShutDown = true;
    },
  };
  const batches = new SpanBatches(origin, sink, limits);
  const begun = { name: 'span', kind: 1, context, parent: null, startedAtMs: null };
  const end = async (count: number) => {
    for (let index = 0; index < count; index += 1) new RecordedSpan(begun, (span) => batches.add(span)).end();
    await settled();
  };
  const sizes = () => exported.map(({ size }) => size);
  return { batches, exported, sizes, end, isShutDown: () => isShutDown };
}

describe('a batch', () => {
  test('goes when it is full', async () => {
    const { end, sizes } = pipeline();
    await end(9);
    expect(sizes()).toEqual([]);
    await end(1);
    expect(sizes()).toEqual([10]);
  });

  test('goes when the delay of its first span is over', async () => {
    const { end, sizes } = pipeline();
    await end(1);
    vi.advanceTimersByTime(4_999);
    await end(1);
    expect(sizes()).toEqual([]);
    vi.advanceTimersByTime(1);
    await settled();
    expect(sizes()).toEqual([2]);
  });

  test('waits for the one before it, taken or not', async () => {
    const { end, sizes, exported } = pipeline();
    await end(25);
    expect(sizes()).toEqual([10]);
    exported[0]?.done();
    await settled();
    expect(sizes()).toEqual([10, 10]);
    exported[1]?.done(new Error('refused'));
    await settled();
    expect(sizes()).toEqual([10, 10]);
    vi.advanceTimersByTime(5_000);
    await settled();
    expect(sizes()).toEqual([10, 10, 5]);
  });

  test('waits for one that hangs no longer than the time limit of exports', async () => {
    const { end, sizes } = pipeline();
    await end(20);
    vi.advanceTimersByTime(29_999);
    await settled();
    expect(sizes()).toEqual([10]);
    vi.advanceTimersByTime(1);
    await settled();
    expect(sizes()).toEqual([10, 10]);
  });
});

test('behind a collector that hangs wait no more spans than the queue holds; the others are gone', async () => {
  const { end, sizes, exported } = pipeline();
  await end(10_000);
  expect(sizes()).toEqual([10]);
  for (let batch = 0; batch < exported.length; batch += 1) {
    exported[batch]?.done();
    await settled();
  }
  expect(sizes()).toEqual(Array.from({ length: 11 }, () => 10));
  await end(10);
  expect(sizes()).toHaveLength(12);
});

test('nor more bytes than spans of the usual size have, however long they are', async () => {
  const { sizes, exported, batches } = pipeline();
  const begun = { name: 'span', kind: 1, context, parent: null, startedAtMs: null };
  for (let index = 0; index < 1_000; index += 1) {
    const span = new RecordedSpan(begun, (ended) => batches.add(ended));
    span.setAttribute('words', 'x'.repeat(9_000));
    span.end();
  }
  await settled();
  for (let batch = 0; batch < exported.length; batch += 1) {
    exported[batch]?.done();
    await settled();
  }
  const bytes = exported.map(({ batch }) => batch.encode().length).reduce((sum, size) => sum + size, 0);
  // The batch under way, and those of the last few spans that are not encoded yet.
  const beyond = limits.maxExportBatchSize + 32;
  expect(bytes).toBeLessThan(limits.maxQueueSize * 2_048 + beyond * 10_000);
  expect(sizes().length).toBeGreaterThan(1);
});

test('the end sends all that waits at once, and then takes no more', async () => {
  const { batches, end, sizes, exported, isShutDown } = pipeline();
  await end(25);
  const closed = batches.shutdown();
  await settled();
  expect(sizes()).toEqual([10, 10, 5]);
  await end(10);
  for (const { done } of exported) done();
  await closed;
  expect(isShutDown()).toBe(true);
  expect(sizes()).toEqual([10, 10, 5]);
});

test('what a resource learns late is waited for', async () => {
  const late = Promise.withResolvers<void>();
  const attributes: Record<string, string> = {};
  let isPending = true;
  const resource = {
    attributes,
    get asyncAttributesPending() {
      return isPending;
    },
    waitForAsyncAttributes: () => late.promise,
  };
  const { end, sizes, exported } = pipeline({ ...plainOrigin, resource });
  await end(10);
  expect(sizes()).toEqual([]);
  isPending = false;
  attributes['host.id'] = 'known-late';
  late.resolve();
  await settled();
  expect(sizes()).toEqual([10]);
  expect(Buffer.from(exported[0]?.batch.encode() ?? []).includes('known-late')).toBe(true);
});
