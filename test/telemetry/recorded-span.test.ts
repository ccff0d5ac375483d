/** When a span of our own begins, ends, and how much it notes. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RecordedSpan } from '../../src/telemetry/recorded-span.ts';

const context = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 };
const beganMs = 1_800_000_000_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: beganMs });
});
afterEach(() => {
  vi.useRealTimers();
});

const begin = (startedAtMs: number | null, ended: (span: RecordedSpan) => void = () => {}) =>
  new RecordedSpan({ name: 'span', kind: 1, context, parent: null, startedAtMs }, ended);

test('ends once it is said so, later by what has passed, wherever the wall clock has been set to', () => {
  const ended: RecordedSpan[] = [];
  const span = begin(null, (it) => ended.push(it));
  vi.advanceTimersByTime(40);
  span.addEvent('event');
  vi.setSystemTime(beganMs - 3_600_000);
  vi.advanceTimersByTime(60);
  expect(ended).toEqual([]);
  span.end();
  expect(ended).toEqual([span]);
  expect(span.startedAtMs).toBe(beganMs);
  expect(span.events[0]?.atMs).toBeCloseTo(beganMs + 40, 2);
  expect(span.endedAtMs).toBeCloseTo(beganMs + 100, 2);
});

test('may have begun before there was a span of it', () => {
  vi.advanceTimersByTime(25);
  const span = begin(beganMs);
  vi.advanceTimersByTime(5);
  span.end();
  expect(span.startedAtMs).toBe(beganMs);
  expect(span.endedAtMs).toBeCloseTo(beganMs + 30, 2);
});

test('keeps as many events as the SDK’s would, the last ones, and counts the others', () => {
  const span = begin(null);
  for (let index = 0; index < 200; index += 1) span.addEvent('skipped', { index });
  expect(span.events).toHaveLength(128);
  expect(span.droppedEvents).toBe(72);
  expect(span.events.map(({ attributes }) => attributes?.['index'])).toEqual(
    Array.from({ length: 128 }, (_, index) => index + 72),
  );
});

test('ends once, and takes no more then', () => {
  const ended: RecordedSpan[] = [];
  const span = begin(null, (it) => ended.push(it));
  span.end();
  const { endedAtMs } = span;
  vi.advanceTimersByTime(5);
  span.setAttribute('late', 1);
  span.addEvent('late');
  span.addLink({ context });
  span.setStatus({ code: 2 });
  span.end();
  expect(ended).toEqual([span]);
  expect(span).toMatchObject({ endedAtMs, keys: [], values: [], events: [], links: [], status: 0 });
});
