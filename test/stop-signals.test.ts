import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { bugBehind, listenForStop } from '../src/stop-signals.ts';

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

test.each<[(keyof typeof happen)[], number, Error | null, boolean[]]>([
  [['signal'], 0, null, []],
  [['bug'], 0, bug, []],
  [['signal', 'signal'], 0, null, [false]],
  [['signal', 'signal', 'signal'], 60_000, null, []],
  [['signal', 'bug'], 60_000, null, [true]],
  [['bug', 'signal'], 0, bug, [false]],
  [['bug', 'bug'], 60_000, bug, [true]],
])(
  '%j, of which those within %d ms are one: stopped once, by %s, and asked further %j',
  (events, sameStopMs, reason, further) => {
    const stop = new AbortController();
    const asked: boolean[] = [];
    listenForStop(stop, { signals: ['SIGUSR2'], sameStopMs, onFurther: (byBug) => void asked.push(byBug) });
    expect(stop.signal.aborted).toBe(false);
    for (const event of events) happen[event]();
    expect(stop.signal.aborted).toBe(true);
    expect(bugBehind(stop.signal)).toBe(reason);
    expect(asked).toEqual(further);
    const told = vi
      .mocked(process.stderr.write)
      .mock.calls.filter(([text]) => String(text).includes(bug.message));
    expect(told).toHaveLength(events.filter((event) => event === 'bug').length);
  },
);

test('a process that runs on has no bug behind it', () => {
  expect(bugBehind(new AbortController().signal)).toBe(null);
});
