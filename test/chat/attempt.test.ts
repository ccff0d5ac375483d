import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { attempt } from '../../src/chat/attempt.ts';
import type { AttemptOutcome } from '../../src/chat/attempt-outcome.ts';
import { longestOfOneTurn } from '../../src/chat/later-turn.ts';
import type { TransportFailureKind } from '../../src/chat/ports.ts';
import type { Candidate } from '../../src/core/candidate.ts';
import type { AttemptFailure } from '../../src/core/outcome.ts';
import { openAiAnswer, openAiError, openAiStream } from '../harness/vendors/openai-wire.ts';
import type { CallParts, FakeUpstream } from './story.ts';
import { callOf, candidateOf, heldKey, secretOf, settled, testTables, World } from './story.ts';
import { expectNobodyWaits } from './watched-dues.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
});

afterEach(() => {
  expectNobodyWaits();
  vi.useRealTimers();
});

const tables = testTables();
const openai = candidateOf('openai', tables);
const ownServer = candidateOf(
  'self_hosted',
  tables,
  heldKey('self_hosted', { baseUrl: 'https://llm.example/api/' }),
);
const streamed: CallParts = { request: { stream: true } };

function begin(candidate: Candidate, parts: CallParts = {}, world = new World(), requestMs = 300_000) {
  const signal = new AbortController().signal;
  const requestDueMs = performance.now() + requestMs;
  const call = callOf({ tables, ...parts });
  const outcome = attempt(
    world.openAttempt(call, candidate),
    call,
    world.deps,
    requestDueMs,
    signal,
    world.room(call),
  );
  return { world, outcome, signal };
}

async function failureOf(outcome: Promise<AttemptOutcome>): Promise<AttemptFailure> {
  const ended = await outcome;
  if (ended.kind !== 'failed') throw new Error(`ended as ${ended.kind}`);
  return ended.failure;
}

describe('what is sent', () => {
  test('goes to the address of the vendor with its key, and asks for no compression', async () => {
    const { world, outcome } = begin(openai);
    const upstream = await world.transport.call(0);
    expect(upstream.call).toMatchObject({
      provider: 'openai',
      origin: 'https://api.openai.com',
      path: '/v1/chat/completions',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'accept-encoding': 'identity',
        authorization: `Bearer ${secretOf(openai.key)}`,
      },
      residency: 'global',
      residencyBound: null,
      userAddress: false,
    });
    expect(upstream.body).toMatchObject({
      model: 'openai-model',
      messages: [{ role: 'user', content: 'hello' }],
    });
    expect(upstream.call.body).not.toContain(secretOf(openai.key));
    upstream.reply(200, openAiAnswer('openai-model'));
    expect((await outcome).kind).toBe('answered');
  });

  test('is written at once where it is short, and as bytes in a turn of its own where it is large', async () => {
    const short = begin(openai);
    await settled();
    expect(short.world.transport.calls).toHaveLength(1);
    const content = 'é'.repeat(longestOfOneTurn);
    const { world, outcome } = begin(openai, { request: { messages: [{ role: 'user', content }] } });
    await settled();
    expect(world.transport.calls).toHaveLength(0);
    const upstream = await world.transport.call(0);
    expect(upstream.call.body).toBeInstanceOf(Buffer);
    expect(upstream.body['messages']).toEqual([{ role: 'user', content }]);
    for (const call of [upstream, await short.world.transport.call(0)]) call.reply(200, openAiAnswer('m'));
    expect([(await outcome).kind, (await short.outcome).kind]).toEqual(['answered', 'answered']);
  });

  test('is nothing when the client leaves before a large one has its turn', async () => {
    const world = new World();
    const leaving = new AbortController();
    const call = callOf({
      tables,
      request: { messages: [{ role: 'user', content: 'x'.repeat(2 * longestOfOneTurn) }] },
    });
    const opened = world.openAttempt(call, openai);
    const outcome = attempt(
      opened,
      call,
      world.deps,
      performance.now() + 300_000,
      leaving.signal,
      world.room(call),
    );
    leaving.abort('client-gone');
    expect(await outcome).toMatchObject({ kind: 'cancelled', reason: 'client-gone' });
    expect(world.transport.calls).toHaveLength(0);
  });

  test('to a user-given address says so, and stays below its path', async () => {
    const { world, outcome } = begin(ownServer, streamed);
    const upstream = await world.transport.call(0);
    expect(upstream.call).toMatchObject({
      origin: 'https://llm.example',
      path: '/api/chat/completions',
      headers: { accept: 'text/event-stream' },
      userAddress: true,
    });
    upstream.stream(...openAiStream('m')).end();
    expect((await outcome).kind).toBe('stream-opened');
  });

  test('never leaves for a candidate outside the residency asked for', async () => {
    const { world, outcome } = begin(openai, { options: { residency: 'india' } });
    await expect(outcome).rejects.toThrow(/residency/);
    expect(world.transport.calls).toHaveLength(0);
  });
});

describe('a second try at the same candidate', () => {
  test('is not made after a failure of the connection: the first may have been executed and billed', async () => {
    const { world, outcome } = begin(openai);
    (await world.transport.call(0)).fail('reset');
    expect((await failureOf(outcome)).kind).toBe('unreachable');
    expect(world.transport.calls).toHaveLength(1);
  });

  test('is made without stream_options for a server that refuses them, and is remembered for its key', async () => {
    const first = begin(ownServer, streamed);
    const refusing = await first.world.transport.call(0);
    expect(refusing.body['stream_options']).toEqual({ include_usage: true });
    refusing.reply(400, { error: { message: 'extra field stream_options' } });
    const again = await first.world.transport.call(1);
    expect(again.body).not.toHaveProperty('stream_options');
    again.stream(...openAiStream('m')).end();
    expect((await first.outcome).kind).toBe('stream-opened');

    const later = begin(ownServer, streamed, first.world);
    const upstream = await first.world.transport.call(2);
    expect(upstream.body).not.toHaveProperty('stream_options');
    upstream.reply(400, { error: { message: 'stream_options again' } });
    expect((await failureOf(later.outcome)).kind).toBe('refused');
    expect(first.world.transport.calls).toHaveLength(3);

    const other = candidateOf('self_hosted', tables, heldKey('self_hosted', { id: 'another key' }));
    const fresh = begin(other, streamed, first.world);
    expect((await first.world.transport.call(3)).body).toHaveProperty('stream_options');
    first.world.transport.calls[3]?.fail('reset');
    await fresh.outcome;
  });

  test.each<[name: string, act: (upstream: FakeUpstream) => void]>([
    ['is refused too', (upstream) => upstream.reply(400, { error: { message: 'no such model' } })],
    ['breaks before a token', (upstream) => upstream.fail('reset')],
  ])('that %s teaches nothing', async (_name, act) => {
    const { world, outcome } = begin(ownServer, streamed);
    (await world.transport.call(0)).reply(400, { error: { message: 'extra field stream_options' } });
    act(await world.transport.call(1));
    expect((await failureOf(outcome)).reason).not.toContain('stream_options');
    expect(world.forms.size).toBe(0);
  });

  test('is not made where the client sent options of its own: the error is for it', async () => {
    const own: CallParts = { request: { stream: true, stream_options: { foo: 1 } } };
    const { world, outcome } = begin(ownServer, own);
    (await world.transport.call(0)).reply(400, { error: { message: 'bad stream_options.foo' } });
    expect((await failureOf(outcome)).reason).toContain('stream_options.foo');
    expect([world.transport.calls.length, world.forms.size]).toEqual([1, 0]);

    world.forms.set(ownServer.key.id, 'without-stream-options');
    const later = begin(ownServer, own, world);
    const upstream = await world.transport.call(1);
    expect(upstream.body['stream_options']).toEqual({ foo: 1 });
    upstream.stream(...openAiStream('m')).end();
    expect((await later.outcome).kind).toBe('stream-opened');
  });

  test.each(['openai', 'together', 'sarvam', 'anthropic'] as const)('is not made at %s', async (name) => {
    const { world, outcome } = begin(candidateOf(name, tables), streamed);
    (await world.transport.call(0)).reply(400, { error: { message: 'stream_options is unknown' } });
    expect((await failureOf(outcome)).kind).toBe('refused');
    expect([world.transport.calls.length, world.forms.size]).toEqual([1, 0]);
  });

  test('is not made for a JSON request, nor for another refusal', async () => {
    for (const [parts, message] of [
      [{}, 'stream_options'],
      [streamed, 'bad temperature'],
    ] as const) {
      const { world, outcome } = begin(ownServer, parts);
      (await world.transport.call(0)).reply(400, { error: { message } });
      expect((await failureOf(outcome)).kind).toBe('refused');
      expect(world.transport.calls).toHaveLength(1);
    }
  });
});

describe('the verdict on', () => {
  test.each<[status: number, kind: string, candidate: boolean, provider: boolean]>([
    [302, 'upstream-failed', true, false],
    [400, 'refused', false, false],
    [401, 'key-rejected', true, false],
    [402, 'key-rejected', true, false],
    [403, 'key-rejected', true, false],
    [404, 'not-found', true, false],
    [405, 'unexpected-status', false, false],
    [408, 'upstream-failed', true, false],
    [409, 'unexpected-status', false, false],
    [413, 'refused', false, false],
    [422, 'refused', false, false],
    [451, 'unexpected-status', false, false],
    [429, 'rate-limited', false, false],
    [500, 'upstream-failed', true, true],
    [503, 'upstream-failed', true, true],
    [529, 'upstream-failed', true, true],
  ])('status %d is %s', async (status, kind, blamesCandidate, blamesProvider) => {
    for (const parts of [{}, streamed]) {
      const { world, outcome } = begin(openai, parts);
      (await world.transport.call(0)).reply(status, openAiError(status, 'in its words'));
      expect(await failureOf(outcome)).toMatchObject({
        kind,
        status,
        blamesCandidate,
        blamesProvider,
        reason: 'in its words',
        reply: { status },
      });
    }
  });

  test.each<[failure: TransportFailureKind, kind: string, candidate: boolean, provider: boolean]>([
    ['connect-refused', 'unreachable', true, true],
    ['connect-timeout', 'unreachable', true, true],
    ['dns', 'unreachable', true, true],
    ['tls', 'unreachable', true, false],
    ['reset', 'unreachable', true, false],
    ['forbidden-address', 'unreachable', false, false],
    ['proxy-unreachable', 'unreachable', true, true],
    ['proxy-refused', 'unreachable', true, true],
    ['proxy-login', 'unreachable', true, true],
    ['proxy-failed', 'unreachable', true, true],
    ['proxy-abroad', 'unreachable', false, false],
    ['protocol', 'unreadable', true, false],
    ['unknown-coding', 'unreadable', true, false],
    ['too-large', 'unreadable', true, false],
    ['no-room', 'no-room', false, false],
  ])('a failure of kind %s is %s', async (failure, kind, blamesCandidate, blamesProvider) => {
    const { world, outcome } = begin(openai);
    (await world.transport.call(0)).fail(failure);
    expect(await failureOf(outcome)).toMatchObject({
      kind,
      status: null,
      reply: null,
      blamesCandidate,
      blamesProvider,
    });
  });

  test.each([
    ['no JSON', 'oops'],
    ['an error object', openAiError(500)],
    ['no choices', { id: 'x', object: 'chat.completion', choices: [] }],
    ['an empty body', ''],
  ])('a 200 that holds %s is unreadable', async (_name, body) => {
    const { world, outcome } = begin(openai);
    (await world.transport.call(0)).reply(200, body);
    expect(await failureOf(outcome)).toMatchObject({ kind: 'unreadable', status: 200, reply: null });
  });

  test('an answer that is too large is unreadable, and is not read to its end', async () => {
    const small = testTables({ limits: { answer_bytes: 100 } });
    const { world, outcome } = begin(openai, { tables: small });
    const upstream = (await world.transport.call(0)).head(200).data('x'.repeat(101));
    expect(upstream.aborted).toBe(true);
    expect((await failureOf(outcome)).kind).toBe('unreadable');
  });

  test('an error body is read up to 64 KiB', async () => {
    const { world, outcome } = begin(openai);
    const upstream = (await world.transport.call(0)).head(500).data('x'.repeat(60_000), 'y'.repeat(60_000));
    expect(upstream.aborted).toBe(true);
    const { reply, status } = await failureOf(outcome);
    expect([status, reply?.body.length]).toEqual([500, 65_536]);
  });

  test.each<[string, number | null, number, boolean, true | undefined]>([
    ['the default limit blames the candidate', null, 120_000, true, undefined],
    ['a shorter limit of the client blames nobody but its caller', 5000, 5000, false, true],
    ['a longer limit of the client blames the candidate', 200_000, 200_000, true, undefined],
    ['the limit of the whole request blames nobody', null, 60_000, false, undefined],
    ['the same with a shorter limit of the client that was not reached', 100_000, 60_000, false, undefined],
  ])('silence: %s', async (_name, timeoutMs, afterMs, blamesCandidate, byCallersLimit) => {
    const requestMs = afterMs === 60_000 ? afterMs : undefined;
    const { world, outcome } = begin(openai, { options: { timeoutMs } }, new World(), requestMs);
    await world.transport.call(0);
    await vi.advanceTimersByTimeAsync(afterMs);
    const failure = await failureOf(outcome);
    expect(failure).toMatchObject({ kind: 'timed-out', blamesCandidate });
    expect(failure.byCallersLimit).toBe(byCallersLimit);
  });

  test('a key that does not open is a failure without a call', async () => {
    const { world, outcome } = begin(
      candidateOf('openai', tables, heldKey('openai', { label: 'cannot be opened' })),
    );
    expect(await failureOf(outcome)).toMatchObject({
      kind: 'key-unreadable',
      status: null,
      blamesCandidate: false,
      blamesProvider: false,
    });
    expect(world.transport.calls).toHaveLength(0);
  });
});

test.each(['before', 'within'])(
  'the key is masked in what the vendor says, cut %s it or not',
  async (where) => {
    const secret = secretOf(openai.key);
    const filler = 'x'.repeat(where === 'before' ? 100 : 495);
    const { world, outcome } = begin(openai);
    (await world.transport.call(0)).reply(401, openAiError(401, `${filler} ${secret} is wrong`));
    const { reason } = await failureOf(outcome);
    expect(reason).not.toContain(secret.slice(0, 4));
  },
);

test('the key is opened for each attempt and kept by nobody', async () => {
  const world = new World();
  for (const index of [0, 1]) {
    const { outcome } = begin(openai, {}, world);
    (await world.transport.call(index)).reply(200, openAiAnswer('m'));
    await outcome;
  }
  expect(world.opened).toEqual(['key-of-openai', 'key-of-openai']);
});

test.each<[name: string, act: (upstream: FakeUpstream) => void]>([
  ['an answer', (upstream) => upstream.reply(200, openAiAnswer('m'))],
  ['an error', (upstream) => upstream.reply(500, openAiError(500))],
  ['a reset', (upstream) => upstream.fail('reset')],
  ['silence', () => vi.advanceTimersByTime(120_000)],
])('%s leaves nothing behind on the signal of the client', async (_name, act) => {
  const { world, outcome, signal } = begin(openai);
  const upstream = await world.transport.call(0);
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  act(upstream);
  await outcome;
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});
