import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { isByBug, listenForStop } from '../src/stop-signals.ts';

const bug = new Error('a state nobody thought of');
let before: NodeJS.UncaughtExceptionListener[] = [];

beforeEach(() => {
  before = process.listeners('uncaughtException');
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
});

afterEach(() => {
  process.removeAllListeners('SIGUSR2');
  for (const listener of ours()) process.off('uncaughtException', listener);
  vi.restoreAllMocks();
});

const ours = () => process.listeners('uncaughtException').filter((listener) => !before.includes(listener));

const happen = {
  signal: () => void process.emit('SIGUSR2'),
  // Not by an event: whoever runs the tests listens too.
  bug: () => {
    for (const listener of ours()) listener(bug, 'uncaughtException');
  },
} as const;

test.each<[(keyof typeof happen)[], number, boolean, boolean[]]>([
  [['signal'], 0, false, []],
  [['bug'], 0, true, []],
  [['signal', 'signal'], 0, false, [false]],
  [['signal', 'signal', 'signal'], 60_000, false, []],
  [['signal', 'bug'], 60_000, false, [true]],
  [['bug', 'signal'], 0, true, [false]],
  [['bug', 'bug'], 60_000, true, [true]],
])(
  '%j, of which those within %d ms are one: stopped once, by a bug %s, and asked further %j',
  (events, sameStopMs, byBug, further) => {
    const stop = new AbortController();
    const asked: boolean[] = [];
    listenForStop(stop, { signals: ['SIGUSR2'], sameStopMs, onFurther: (byBug) => void asked.push(byBug) });
    expect(stop.signal.aborted).toBe(false);
    for (const event of events) happen[event]();
    expect(stop.signal.aborted).toBe(true);
    expect(isByBug(stop.signal)).toBe(byBug);
    expect(asked).toEqual(further);
    const told = vi
      .mocked(process.stderr.write)
      .mock.calls.filter(([text]) => String(text).includes(bug.message));
    expect(told).toHaveLength(events.filter((event) => event === 'bug').length);
  },
);

test('a process that runs on has no bug behind it', () => {
  expect(isByBug(new AbortController().signal)).toBe(false);
});

test.each([
  ['an error that is called AbortError', new DOMException('The operation was aborted', 'AbortError')],
  ['no error', 'a text'],
  ['nothing', null],
  ['undefined', undefined],
])('%s that nobody caught is a bug', (_what, thrown) => {
  const stop = new AbortController();
  listenForStop(stop, { signals: [], sameStopMs: 0, onFurther: () => undefined });
  for (const listener of ours()) listener(thrown as Error, 'uncaughtException');
  expect(isByBug(stop.signal)).toBe(true);
  expect(process.stderr.write).toHaveBeenCalledOnce();
});
