import type { Clock } from '../../chat/ports.ts';

/** A wall clock set back further than this is believed; less is jitter, and stamps just count on. */
const believedSetbackMicros = 1_000_000;

/** The real clock. */
export function createSystemClock(): Clock {
  let lastMicros = 0;
  return {
    wallMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    stampMicros: () => {
      const micros = Date.now() * 1000;
      const followsOn = micros > lastMicros || lastMicros - micros > believedSetbackMicros;
      lastMicros = followsOn ? micros : lastMicros + 1;
      return lastMicros;
    },
  };
}
