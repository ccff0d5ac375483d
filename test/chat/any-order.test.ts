import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { doneFrame } from '../../src/core/answer/sse-frame.ts';
import { openAiAnswer, openAiChunk, openAiError, openAiStream, sse } from '../harness/vendors/openai-wire.ts';
import type { FakeUpstream } from './story.ts';
import { accountOf, callOf, FakeClient, heldKey, settled, World } from './story.ts';
import { expectNobodyWaits } from './watched-dues.ts';

/** What no order of events may break: whoever does what when, one row, and nobody takes a cut answer for a whole one. */

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
});

afterEach(() => {
  vi.useRealTimers();
});

const keys = [heldKey('openai'), heldKey('sarvam')];
const role = sse(openAiChunk('m', { role: 'assistant', content: '' }));
const token = sse(openAiChunk('m', { content: 'x' }));
const finish = openAiStream('m', { text: [] }).slice(1, -1);
const done = sse('[DONE]');

/** What a vendor does; `false`: its call is over after it. */
const vendorActs = {
  head: (upstream: FakeUpstream) => {
    upstream.head(200, { 'content-type': 'text/event-stream' });
    return true;
  },
  role: (upstream: FakeUpstream) => {
    upstream.data(role);
    return true;
  },
  token: (upstream: FakeUpstream) => {
    upstream.data(token);
    return true;
  },
  finish: (upstream: FakeUpstream) => {
    upstream.data(...finish);
    return true;
  },
  done: (upstream: FakeUpstream) => {
    upstream.data(done);
    return true;
  },
  whole: (upstream: FakeUpstream) => {
    upstream.stream(role, token, ...finish, done).end();
    return false;
  },
  nonsense: (upstream: FakeUpstream) => {
    upstream.data('data: {oops\n\n');
    return true;
  },
  end: (upstream: FakeUpstream) => {
    upstream.end();
    return false;
  },
  reset: (upstream: FakeUpstream) => {
    upstream.fail('reset');
    return false;
  },
  error: (upstream: FakeUpstream) => {
    upstream.reply(503, openAiError(503));
    return false;
  },
  json: (upstream: FakeUpstream) => {
    upstream.reply(200, openAiAnswer('m'));
    return false;
  },
} as const;

type VendorAct = keyof typeof vendorActs;
const vendorNames = Object.keys(vendorActs) as VendorAct[];
const worldActs = ['leave', 'drain', 'slow', 'caught up', 'a second', 'a minute', 'an hour'] as const;
type Act = VendorAct | (typeof worldActs)[number];

/** Vendors act most of the time: otherwise few stories get far. */
const acts = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom<Act>(...vendorNames) },
    { weight: 2, arbitrary: fc.constantFrom<Act>('head', 'token', 'finish', 'done') },
    { weight: 1, arbitrary: fc.constantFrom<Act>(...worldActs) },
  ),
  { maxLength: 25 },
);

const waits: Partial<Record<Act, number>> = { 'a second': 1000, 'a minute': 60_000, 'an hour': 3_600_000 };

class Play {
  readonly world = new World();
  readonly client = new FakeClient();
  readonly over = new Set<FakeUpstream>();
  readonly headed = new Set<FakeUpstream>();
  callsWhenOpened: number | null = null;

  async act(act: Act): Promise<void> {
    const ms = waits[act];
    if (ms !== undefined) await vi.advanceTimersByTimeAsync(ms);
    else if (act === 'leave') this.client.leave();
    else if (act === 'drain') this.client.controller.abort('drain');
    else if (act === 'slow') this.client.ready = false;
    else if (act === 'caught up') this.#catchUp();
    else this.#vendor(act as VendorAct);
    await settled();
    if (this.client.opened > 0) this.callsWhenOpened ??= this.world.transport.calls.length;
  }

  #catchUp(): void {
    this.client.ready = true;
    this.client.drain();
  }

  #vendor(act: VendorAct): void {
    const upstream = this.world.transport.calls.at(-1);
    // A real transport says nothing while paused, after an abort, and after its end.
    if (upstream === undefined || this.over.has(upstream) || upstream.aborted || upstream.paused) return;
    const whole = act === 'whole' || act === 'error' || act === 'json';
    if (whole && this.headed.has(upstream)) return;
    const needsHead = !whole && !['head', 'reset'].includes(act);
    if (act === 'head' && this.headed.has(upstream)) return;
    if (needsHead && !this.headed.has(upstream)) vendorActs.head(upstream);
    if (needsHead || act === 'head' || whole) this.headed.add(upstream);
    if (!vendorActs[act](upstream)) this.over.add(upstream);
  }
}

test.each([
  ['a stream', true, null],
  ['a stream with the cache', true, 600],
  ['JSON with the cache', false, 600],
])(
  '%s: one row, nothing before the first token, nothing else tried after it, no cut answer looks whole',
  async (_name, stream, cacheTtlSeconds) => {
    await fc.assert(
      fc.asyncProperty(acts, async (script) => {
        const play = new Play();
        const { world, client } = play;
        const call = callOf({ request: { stream }, options: { cacheTtlSeconds } });
        let body: unknown = null;
        const ended = world
          .answerChat(call, accountOf(keys), client, () => Promise.resolve(null))
          .then(
            (json) => {
              body = json;
            },
            () => undefined,
          );
        await settled();
        for (const act of script) await play.act(act);
        await play.act('leave');
        await play.act('an hour');
        await ended;
        await settled();

        expect(world.rows).toHaveLength(1);
        expectNobodyWaits();
        expect(client.opened).toBe(play.callsWhenOpened === null ? 0 : 1);
        if (client.opened === 0) expect(client.text).toBe('');
        else expect(world.transport.calls).toHaveLength(play.callsWhenOpened as number);
        for (const upstream of world.transport.calls)
          expect(upstream.aborted || play.over.has(upstream)).toBe(true);

        const status = world.rows[0]?.status;
        const isWhole = client.text.endsWith(doneFrame);
        expect(client.text.split('"gateway"')).toHaveLength(isWhole ? 2 : 1);
        expect(client.text.split('"error"')).toHaveLength(status === 'incomplete' ? 2 : 1);
        if (stream && status === 'success') expect(isWhole).toBe(true);
        if (isWhole) expect(status === 'success' || status === 'client_closed').toBe(true);
        if (body !== null) expect(['success', 'client_closed']).toContain(status);
        // What the vendor gave in one piece is whole, even if the client left before it had read all of it.
        const isAnswered = isWhole || body !== null || script.includes('json');
        const mayBeStored = cacheTtlSeconds !== null && isAnswered;
        expect(world.store.entries.size).toBeLessThanOrEqual(mayBeStored ? 1 : 0);
        if (mayBeStored && body !== null) expect(world.store.entries.size).toBe(1);
      }),
      { numRuns: 100 },
    );
  },
);
