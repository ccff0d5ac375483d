import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { UpstreamTransport } from '../../src/chat/ports.ts';
import { openAiAnswer, openAiError, openAiStream } from '../harness/vendors/openai-wire.ts';
import { accountOf, callOf, FakeClient, FakeUpstream, heldKey, settled, testTables, World } from './story.ts';

/**
 * A vendor that is down for a minute and then well: everybody is served by the next one meanwhile, few
 * requests are spent on finding out, and it is used again soon after. The clock is in the test's hand.
 */

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
});

afterEach(() => {
  vi.useRealTimers();
});

const downMs = 60_000;
const afterMs = 30_000;
const stepMs = 250;

type Fault = (upstream: FakeUpstream) => void;

const faults: Record<string, Fault> = {
  'answers 500': (upstream) => upstream.reply(500, openAiError(500)),
  'refuses connections': (upstream) => upstream.fail('connect-refused'),
  'resets connections': (upstream) => upstream.fail('reset'),
  hangs: () => undefined,
};

/** openai has the fault until `downMs`; all else answers at once. */
class FlappingVendor {
  readonly calls: { readonly atMs: number }[] = [];
  readonly transport: UpstreamTransport;

  constructor(beginMs: number, fault: Fault) {
    this.transport = {
      send: (call, listener) => {
        const upstream = new FakeUpstream(call, listener);
        const atMs = performance.now() - beginMs;
        const down = call.provider === 'openai' && atMs < downMs;
        if (call.provider === 'openai') this.calls.push({ atMs });
        queueMicrotask(() => {
          if (upstream.aborted) return;
          if (!down && upstream.body['stream'] === true) upstream.stream(...openAiStream('m', {})).end();
          else if (!down) upstream.reply(200, openAiAnswer('m', { text: ['ok'] }));
          else fault(upstream);
        });
        return upstream;
      },
    };
  }
}

const users = (count: number) => Array.from({ length: count }, (_, index) => `user-${index}`);

test.each(
  Object.keys(faults).flatMap((name) =>
    [1, 3, 20].flatMap((count) => [false, true].map((stream) => [name, count, stream] as const)),
  ),
)(
  'a vendor that %s, with %i users (stream: %s), is used again within 15 s of being well',
  async (name, count, stream) => {
    const world = new World();
    const vendor = new FlappingVendor(performance.now(), faults[name] as Fault);
    Object.assign(world.deps, { transport: vendor.transport });
    // The rules are the default ones; the hanging vendor is found out by a limit that counts.
    const tables = testTables({ cooldown: {}, timeouts: { attempt_seconds: 10 } });
    const beginMs = performance.now();
    const served: { readonly atMs: number; readonly user: string; readonly by: string }[] = [];
    const ends: Promise<void>[] = [];
    const names = users(count);
    const ask = (user: string): void => {
      const atMs = performance.now() - beginMs;
      const keys = (['openai', 'sarvam'] as const).map((provider) =>
        heldKey(provider, { id: `${provider} of ${user}`, userId: user }),
      );
      const call = callOf({ userId: user, tables, request: { stream } });
      const rows = world.rows.length;
      ends.push(
        world
          .answerChat(call, accountOf(keys), new FakeClient(), () => Promise.resolve(null))
          .then(() => {
            const row = world.rows.slice(rows).find(({ userId }) => userId === user);
            served.push({ atMs, user, by: row?.provider ?? 'nobody' });
          }),
      );
    };
    for (let step = 0; step * stepMs < downMs + afterMs; step += 1) {
      for (const user of names) ask(user);
      await settled();
      await vi.advanceTimersByTimeAsync(stepMs);
    }
    await vi.advanceTimersByTimeAsync(20_000);
    await Promise.all(ends);

    // Nothing is lost, and nobody is asked twice for one request.
    expect(served).toHaveLength(names.length * ((downMs + afterMs) / stepMs));
    expect(world.rows.every(({ status, attempts }) => status === 'success' && attempts.length <= 2)).toBe(
      true,
    );
    // Once it is known to be down, a probe now and then is all it gets.
    const known = name === 'hangs' ? 25_000 : 5_000;
    const probes = vendor.calls.filter(({ atMs }) => atMs > known && atMs < downMs);
    expect(probes.length).toBeLessThanOrEqual(count * 6);
    expect(probes.length).toBeGreaterThan(0);
    // Well again: soon for somebody, and within 30 s for everybody.
    const again = served.filter(({ atMs, by }) => atMs >= downMs && by === 'openai');
    expect(again[0]?.atMs).toBeLessThanOrEqual(downMs + 15_000 + stepMs);
    expect(new Set(again.map(({ user }) => user))).toEqual(new Set(names));
    const late = served.filter(({ atMs }) => atMs >= downMs + afterMs - 5 * stepMs);
    expect(late.every(({ by }) => by === 'openai')).toBe(true);
  },
);
