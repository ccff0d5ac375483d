/** Whose handshakes wait while dear ones have their rest, and for how long. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { TlsTurns } from '../../../src/adapters/upstream/tls-turns.ts';

/** Until the end of the test, timers go on when it says so. */
function holdTimers(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'setImmediate'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
}

/** Turns by a clock of their own, and the names of what was fed. */
function watchedTurns() {
  const clock = { ms: 0 };
  vi.spyOn(performance, 'now').mockImplementation(() => clock.ms);
  onTestFinished(() => {
    vi.restoreAllMocks();
  });
  const turns = new TlsTurns();
  const fed: string[] = [];
  const later = (name: string, takesMs: number) => ({
    isHandshake: false,
    network: 'any',
    feed: () => {
      fed.push(name);
      clock.ms += takesMs;
    },
  });
  /** The one piece of a handshake, which is over with it. */
  const handshake = (name: string, takesMs: number, network: string | null) => {
    const piece = { ...later(name, takesMs), isHandshake: true, network };
    const feed = () => {
      piece.isHandshake = false;
      fed.push(name);
      clock.ms += takesMs;
    };
    return Object.assign(piece, { feed });
  };
  const waitMs = (ms: number): void => {
    clock.ms += ms;
    vi.advanceTimersByTime(ms);
  };
  return { turns, fed, later, handshake, waitMs };
}

test('what takes long is done in a turn of its own, one after the other', async () => {
  const { turns, fed, later } = watchedTurns();
  const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));
  turns.enter(later('short', 1));
  turns.enter(later('long', 70));
  turns.enter(later('second', 70));
  turns.enter(later('third', 10));
  turns.enter(later('fourth', 10));
  expect(fed).toEqual(['short', 'long']);
  await nextTurn();
  expect(fed).toEqual(['short', 'long', 'second']);
  await nextTurn();
  expect(fed).toEqual(['short', 'long', 'second', 'third', 'fourth']);
  turns.enter(later('fifth', 1));
  expect(fed.at(-1)).toBe('fifth');
});

test('a dear handshake has the next one wait four times as long, but not with networks known to be cheap', () => {
  holdTimers();
  const { turns, fed, later, handshake, waitMs } = watchedTurns();
  turns.enter(handshake('known', 2, '198.51.100.7'));
  turns.enter(handshake('dear', 60, '203.0.113.1'));
  turns.enter(handshake('dear again', 60, '203.0.113.1'));
  turns.enter(later('a stream', 1));
  turns.enter(handshake('known again', 2, '198.51.100.7'));
  waitMs(1);
  const atOnce = ['known', 'dear', 'a stream', 'known again'];
  expect(fed).toEqual(atOnce);
  waitMs(238);
  expect(fed).toEqual(atOnce);
  waitMs(2);
  expect(fed).toEqual([...atOnce, 'dear again']);
});

test.each([
  ['another network each', (at: number) => `203.0.113.${at}`],
  ['a place that nobody knows, behind a proxy', () => null],
])('dear handshakes with %s take a fifth of the time, as those with one do', (_, network) => {
  holdTimers();
  const { turns, fed, handshake, waitMs } = watchedTurns();
  for (let at = 0; at < 100; at += 1) turns.enter(handshake(`dear ${at}`, 60, network(at)));
  for (let ms = 0; ms < 1_200; ms += 1) waitMs(1);
  expect(fed.length).toBeGreaterThan(3);
  expect(fed.length).toBeLessThanOrEqual(6);
});

test('a network that was dear is believed to be cheap no sooner than a minute later', () => {
  holdTimers();
  const { turns, fed, handshake, waitMs } = watchedTurns();
  const [sly, other] = ['203.0.113.1', '203.0.113.2'];
  turns.enter(handshake('cheap, to be known', 1, sly));
  turns.enter(handshake('dear', 60, sly));
  waitMs(241);
  turns.enter(handshake('cheap, to be known again', 1, sly));
  waitMs(1);
  turns.enter(handshake('begins a rest', 60, other));
  turns.enter(handshake('waits', 1, sly));
  waitMs(1);
  expect(fed.at(-1)).toBe('begins a rest');
  waitMs(61_000);
  expect(fed.at(-1)).toBe('waits');
  turns.enter(handshake('begins another', 60, other));
  waitMs(1);
  turns.enter(handshake('waits no more', 1, sly));
  expect(fed.at(-1)).toBe('waits no more');
});

test('whoever is unknown waits for no network that was dear, however many of these there are', () => {
  holdTimers();
  const { turns, fed, handshake, waitMs } = watchedTurns();
  for (let at = 0; at < 6; at += 1) {
    turns.enter(handshake('dear once', 60, `203.0.113.${at}`));
    waitMs(241);
  }
  for (let at = 0; at < 18; at += 1) turns.enter(handshake(`dear ${at}`, 60, `203.0.113.${at % 6}`));
  turns.enter(handshake('honest', 2, '198.51.100.7'));
  waitMs(1);
  waitMs(241);
  expect(fed).toContain('honest');
});

test('a crowd of connections to a dear server keeps an unknown one out for one rest', () => {
  holdTimers();
  const { turns, fed, handshake, waitMs } = watchedTurns();
  for (let at = 0; at < 40; at += 1) turns.enter(handshake(`dear ${at}`, 60, '203.0.113.1'));
  turns.enter(handshake('honest', 1, '198.51.100.7'));
  waitMs(4 * 60 + 10);
  expect(fed).toEqual(['dear 0', 'honest', 'dear 1']);
});
