/** A whole answer that goes out as a stream, to a client that is always about to catch up. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openAiAnswer } from '../harness/vendors/openai-wire.ts';
import { accountOf, callOf, FakeClient, heldKey, World } from './story.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
});

afterEach(() => {
  expect(vi.getTimerCount(), 'no timer is left').toBe(0);
  vi.useRealTimers();
});

/** As a connection is: once it is closed, its client has left. */
class LettableClient extends FakeClient {
  override destroy(): void {
    super.destroy();
    this.leave();
  }
}

/** Takes an event every `everyMs`; resolves to when it was over, in seconds since the answer was there. */
async function readEvery(
  everyMs: number,
): Promise<{ readonly afterSeconds: number; readonly status: unknown }> {
  const world = new World();
  const client = new LettableClient();
  client.ready = false;
  const call = callOf({ request: { stream: true } });
  const ended = world.answerChat(call, accountOf([heldKey('openai')]), client, () => Promise.resolve(null));
  (await world.transport.call(0)).reply(200, openAiAnswer('gpt-test', { text: ['x'.repeat(1_000_000)] }));
  await vi.advanceTimersByTimeAsync(1);
  let afterMs = 0;
  while (client.ended === null && afterMs < 3_600_000) {
    await vi.advanceTimersByTimeAsync(everyMs);
    afterMs += everyMs;
    client.drain();
  }
  await ended.catch(() => null);
  return { afterSeconds: afterMs / 1000, status: world.rows[0]?.status };
}

test('has the time that its request has, and no more', async () => {
  expect(await readEvery(50_000)).toEqual({ afterSeconds: 300, status: 'client_closed' });
});

test('gets all of it within that time', async () => {
  const { afterSeconds, status } = await readEvery(1_000);
  expect(status).toBe('success');
  expect(afterSeconds).toBeLessThan(200);
});
