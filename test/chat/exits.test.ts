import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ClientGoneError } from '../../src/chat/answer-chat.ts';
import { VerbatimError } from '../../src/chat/verbatim-error.ts';
import { doneFrame } from '../../src/core/answer/sse-frame.ts';
import type { HeldKey } from '../../src/core/candidate.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { KeyMask } from '../../src/core/secret/key-mask.ts';
import { providers } from '../../src/providers/registry.ts';
import { openAiAnswer, openAiChunk, openAiError, openAiStream, sse } from '../harness/vendors/openai-wire.ts';
import type { CallParts, FakeUpstream, SettledRow } from './story.ts';
import {
  accountOf,
  balancedKeys,
  callOf,
  FakeClient,
  heldKey,
  secretOf,
  settled,
  testTables,
  World,
} from './story.ts';
import { expectNobodyWaits } from './watched-dues.ts';

/** Every way out of one chat request, with the vendor, the client and the clock in the test's hand. */

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
});

afterEach(() => {
  expectNobodyWaits();
  vi.useRealTimers();
});

interface Story {
  readonly world: World;
  readonly client: FakeClient;
  /** How it ended: the JSON body, null for a stream, or what was thrown. */
  end(): Promise<unknown>;
}

function begin(
  parts: CallParts = {},
  keys: readonly HeldKey[] = balancedKeys,
  world = new World(),
  client = new FakeClient(),
): Story {
  const running = world
    .answerChat(callOf(parts), accountOf(keys), client, () => Promise.resolve(null))
    .catch((error: unknown) => error);
  return { world, client, end: () => running };
}

const streamed: CallParts = { request: { stream: true } };
const cached: CallParts = { options: { cacheTtlSeconds: 120 } };
const cachedStream: CallParts = { ...streamed, ...cached };

const role = sse(openAiChunk('gpt-test', { role: 'assistant', content: '' }));
const token = (text: string): string => sse(openAiChunk('gpt-test', { content: text }));
const wholeStream = openAiStream('gpt-test', { text: ['Hel', 'lo'] });
const answer = openAiAnswer('gpt-test', { text: ['Hello'] });
/** The answer with its one choice changed. */
const withChoice = (change: object): object => ({
  ...answer,
  choices: [{ ...(answer['choices'] as object[])[0], ...change }],
});
/** 11 input tokens at 1 and 7 output tokens at 5 micro-dollars. */
const costMicroUsd = 46n;

/** A world in which requests for one vendor cannot be translated. */
function worldWithout(provider: 'openai', bug: Error): World {
  const world = new World();
  const broken = {
    ...providers[provider],
    translateRequest: () => {
      throw bug;
    },
  };
  Object.assign(world.deps, { providers: { ...providers, [provider]: broken } });
  return world;
}

/** What every exit must leave behind: one row, told once to the log and to the watchers. */
function onlyRow({ world }: Story): SettledRow {
  expect(world.rows).toHaveLength(1);
  expect(world.telemetry.rows).toEqual(world.rows);
  return world.rows[0] as SettledRow;
}

const deltasOf = (client: FakeClient): unknown[] =>
  client.events.flatMap((event) =>
    event === '[DONE]'
      ? [event]
      : ((event['choices'] as { delta: unknown }[] | undefined) ?? [event]).map(
          ({ delta }) => delta ?? event,
        ),
  );

const gatewayBlock = (client: FakeClient): Record<string, unknown> => {
  const blocks = deltasOf(client).filter(
    (delta) => typeof delta === 'object' && delta !== null && 'gateway' in delta,
  );
  expect(blocks).toHaveLength(1);
  return (blocks[0] as { gateway: Record<string, unknown> }).gateway;
};

describe('an answer', () => {
  test('as JSON has one row with the cost of its block', async () => {
    const story = begin();
    await vi.advanceTimersByTimeAsync(250);
    (await story.world.transport.call(0)).reply(200, answer);
    const body = JSON.parse((await story.end()) as string) as Record<string, unknown>;
    const row = onlyRow(story);
    expect(body['gateway']).toEqual({
      provider: 'openai',
      model: 'gpt-test',
      mode: 'gw/balanced',
      cache_hit: false,
      latency_ms: 250,
      cost_usd: '0.000046',
      residency_actual: 'global',
      request_id: 'request-1',
    });
    expect(row).toMatchObject({
      status: 'success',
      error: null,
      provider: 'openai',
      model: 'gpt-test',
      mode: 'gw/balanced',
      latencyMs: 250,
      ttftMs: null,
      costMicroUsd,
      savedMicroUsd: 0n,
      cacheHit: false,
      stream: false,
      tablesVersion: 'test-tables',
      usage: { basis: 'complete', inputTokens: 11, outputTokens: 7 },
      attempts: [{ provider: 'openai', status: 200, reason: 'served', latency_ms: 250 }],
    });
    expect(story.client.opened).toBe(0);
    expect(story.world.telemetry).toMatchObject({ cache: ['bypass'], streams: 0, streamEnds: [] });
  });

  test('as JSON is not handed out before its row is kept', async () => {
    const world = new World();
    let commit = (): void => undefined;
    world.commit = new Promise((resolve) => {
      commit = resolve;
    });
    const story = begin({}, balancedKeys, world);
    let ended = false;
    void story.end().then(() => {
      ended = true;
    });
    (await world.transport.call(0)).reply(200, answer);
    await settled();
    expect(ended).toBe(false);
    commit();
    await story.end();
  });

  test('as a stream has one row with the cost of its last chunk', async () => {
    const story = begin({ request: { stream: true, stream_options: { include_usage: true } } });
    const upstream = await story.world.transport.call(0);
    await vi.advanceTimersByTimeAsync(100);
    upstream.stream(role, token('Hel'));
    await vi.advanceTimersByTimeAsync(50);
    upstream.data(...wholeStream.slice(2)).end();
    expect(await story.end()).toBeNull();
    const row = onlyRow(story);
    expect(row).toMatchObject({ status: 'success', ttftMs: 100, latencyMs: 150, costMicroUsd, stream: true });
    expect(gatewayBlock(story.client)).toMatchObject({
      cost_usd: '0.000046',
      latency_ms: 150,
      cache_hit: false,
    });
    const kinds = story.client.events.slice(-3).map((event) => {
      if (event === '[DONE]') return event;
      const [choice] = event['choices'] as { delta: object; finish_reason: unknown }[];
      if (choice === undefined) return 'usage';
      const { total_tokens: total } = (event['usage'] ?? {}) as { total_tokens?: number };
      return 'gateway' in choice.delta
        ? `gateway and ${total} tokens`
        : `finish ${String(choice.finish_reason)}`;
    });
    expect(kinds).toEqual(['finish stop', 'gateway and 18 tokens', '[DONE]']);
    expect(story.client.text.match(/"usage"/g)).toHaveLength(1);
    expect([story.client.opened, story.client.ended]).toEqual([1, 'clean']);
    expect(story.world.telemetry).toMatchObject({ streams: 1, streamEnds: ['complete'] });
  });

  test('as a stream shows no usage to a client that did not ask, and prices it all the same', async () => {
    const story = begin(streamed);
    (await story.world.transport.call(0)).stream(...wholeStream).end();
    await story.end();
    expect(story.client.text).not.toContain('"usage"');
    expect(onlyRow(story).costMicroUsd).toBe(costMicroUsd);
  });

  test('as a stream whose vendor reports no usage costs nothing', async () => {
    const story = begin(streamed);
    (await story.world.transport.call(0)).stream(...openAiStream('gpt-test', { usage: null })).end();
    await story.end();
    expect(gatewayBlock(story.client)['cost_usd']).toBe('0.000000');
    expect(onlyRow(story)).toMatchObject({ status: 'success', costMicroUsd: 0n });
  });

  test('as a stream is not ended before its row is kept, but its tokens flow', async () => {
    const world = new World();
    let commit = (): void => undefined;
    world.commit = new Promise((resolve) => {
      commit = resolve;
    });
    const story = begin(streamed, balancedKeys, world);
    (await world.transport.call(0)).stream(...wholeStream).end();
    await settled();
    expect(story.client.text).toContain('Hel');
    expect(story.client.text).not.toContain('[DONE]');
    commit();
    await story.end();
    expect(story.client.text.endsWith(doneFrame)).toBe(true);
  });

  test.each([
    ['openai', answer],
    [
      'anthropic',
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'gpt-test',
        content: [{ type: 'text', text: 'Hello' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 11, output_tokens: 7 },
      },
    ],
  ] as const)(
    'that %s gives whole to a stream request is streamed, and paid once',
    async (provider, body) => {
      const story = begin({ request: { stream: true, stream_options: { include_usage: true } }, ...cached }, [
        heldKey(provider),
      ]);
      const upstream = await story.world.transport.call(0);
      await vi.advanceTimersByTimeAsync(100);
      upstream.reply(200, body);
      expect(await story.end()).toBeNull();
      expect(onlyRow(story)).toMatchObject({
        status: 'success',
        provider,
        ttftMs: 100,
        stream: true,
        usage: { inputTokens: 11, outputTokens: 7 },
      });
      expect(deltasOf(story.client)).toContainEqual({ content: 'Hello' });
      expect(story.client.text).toContain('"completion_tokens":7');
      expect(gatewayBlock(story.client)).toMatchObject({ provider, cache_hit: false });
      expect(story.client.text.endsWith(doneFrame)).toBe(true);
      expect([story.client.opened, story.client.ended]).toEqual([1, 'clean']);
      expect(story.world.transport.calls).toHaveLength(1);
      await settled();
      expect(story.world.store.entries.size).toBe(1);
    },
  );

  test('comes from the next candidate when an error of ours keeps the first from being asked', async () => {
    const bug = new RangeError('Maximum call stack size exceeded');
    const story = begin({}, balancedKeys, worldWithout('openai', bug));
    (await story.world.transport.call(0)).reply(200, answer);
    expect(await story.end()).toContain('"provider":"sarvam"');
    expect(onlyRow(story)).toMatchObject({
      status: 'success',
      attempts: [
        { provider: 'openai', status: null, reason: 'internal-error: An error of the gateway itself.' },
        { provider: 'sarvam', status: 200 },
      ],
    });
    expect(story.world.bugs).toEqual([bug]);
  });

  test('comes from the next candidate when the first one fails', async () => {
    const story = begin(streamed);
    (await story.world.transport.call(0)).reply(500, openAiError(500));
    const second = await story.world.transport.call(1);
    expect(second.call.origin).toBe('https://api.sarvam.ai');
    expect(story.client.opened).toBe(0);
    second.stream(...wholeStream).end();
    await story.end();
    expect(onlyRow(story)).toMatchObject({
      status: 'success',
      provider: 'sarvam',
      residencyActual: 'india',
      attempts: [
        { provider: 'openai', status: 500 },
        { provider: 'sarvam', status: 200, reason: 'served' },
      ],
    });
    expect(story.world.telemetry.fallbacks).toEqual(['openai upstream-failed sarvam']);
    expect(story.world.telemetry.attempts.map(({ number, end }) => [number, end.kind])).toEqual([
      [1, 'failed'],
      [2, 'served'],
    ]);
  });
});

describe('before the first token', () => {
  test.each<[name: string, events: readonly string[]]>([
    ['nothing but a clean end', []],
    ['a role and a clean end', [role]],
    ['a role and the end marker', [role, sse('[DONE]')]],
    ['a comment and a cut', [': hi\n\n']],
    ['an error event', [role, sse(openAiError(500))]],
    ['no JSON', ['data: {oops\n\n']],
  ])('%s falls back, unseen by the client', async (_name, events) => {
    const story = begin(streamed);
    const first = (await story.world.transport.call(0)).stream(...events);
    if (!first.aborted) first.end();
    const second = await story.world.transport.call(1);
    expect([story.client.opened, story.client.text]).toEqual([0, '']);
    second.stream(...wholeStream).end();
    await story.end();
    expect(onlyRow(story)).toMatchObject({ status: 'success', provider: 'sarvam' });
    expect(deltasOf(story.client)).toContainEqual({ content: 'Hel' });
  });

  test('a reset falls back', async () => {
    const story = begin(streamed);
    (await story.world.transport.call(0)).stream(role).fail('reset');
    (await story.world.transport.call(1)).stream(...wholeStream).end();
    await story.end();
    expect(onlyRow(story)).toMatchObject({ status: 'success', provider: 'sarvam' });
  });

  test.each<[name: string, body: unknown]>([
    ['no answer', { id: 'x', choices: [] }],
    ['an error', openAiError(500)],
    ['half an answer', withChoice({ finish_reason: null })],
  ])('a JSON body that is %s falls back', async (_name, body) => {
    const story = begin(streamed);
    (await story.world.transport.call(0)).reply(200, body);
    (await story.world.transport.call(1)).stream(...wholeStream).end();
    await story.end();
    expect(onlyRow(story)).toMatchObject({ status: 'success', provider: 'sarvam' });
  });

  test('silence falls back after the limit of the attempt, and the socket is closed', async () => {
    const story = begin({ ...streamed, options: { timeoutMs: 2000 } });
    const first = (await story.world.transport.call(0)).stream(role);
    await vi.advanceTimersByTimeAsync(1999);
    expect(story.world.transport.calls).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(first.aborted).toBe(true);
    (await story.world.transport.call(1)).stream(...wholeStream).end();
    await story.end();
    expect(onlyRow(story).attempts[0]).toMatchObject({
      status: null,
      reason: 'timed-out: No answer within 2.0 s.',
    });
  });

  test('a client that leaves ends it all: no other candidate, one row, the socket closed', async () => {
    const story = begin(streamed);
    const first = (await story.world.transport.call(0)).stream(role);
    story.client.leave();
    expect(await story.end()).toBeInstanceOf(ClientGoneError);
    expect(first.aborted).toBe(true);
    expect(story.world.transport.calls).toHaveLength(1);
    expect(onlyRow(story)).toMatchObject({ status: 'client_closed', provider: 'openai', ttftMs: null });
    expect(story.client.opened).toBe(0);
  });

  test('a client that left before anything was sent costs no call', async () => {
    const client = new FakeClient();
    client.leave();
    const story = begin({}, balancedKeys, new World(), client);
    expect(await story.end()).toBeInstanceOf(ClientGoneError);
    expect(story.world.transport.calls).toHaveLength(0);
    expect(onlyRow(story).status).toBe('client_closed');
  });

  test('a drain answers 503', async () => {
    const story = begin(streamed);
    const first = await story.world.transport.call(0);
    story.client.controller.abort('drain');
    const error = (await story.end()) as GatewayError;
    expect([error.status, error.code, error.headers]).toEqual([503, 'draining', { 'retry-after': '1' }]);
    expect(first.aborted).toBe(true);
    expect(onlyRow(story)).toMatchObject({
      status: 'error',
      error: 'service_unavailable_error: The gateway is shutting down.',
    });
  });

  test('more bytes before the first token than one event may have are a failure', async () => {
    const tables = testTables({ limits: { event_bytes: 1000 } });
    const story = begin({ ...streamed, tables });
    const first = (await story.world.transport.call(0)).stream(': ping\n\n'.repeat(200));
    expect(first.aborted).toBe(true);
    (await story.world.transport.call(1)).stream(...wholeStream).end();
    await story.end();
    expect(onlyRow(story).attempts[0]?.reason).toMatch(/^unreadable: The stream exceeds 1000 bytes/);
  });
});

describe('after the first token', () => {
  /** A stream that has said `Hel`. */
  async function opened(parts: CallParts = streamed) {
    const story = begin(parts);
    const upstream = (await story.world.transport.call(0)).stream(role, token('Hel'));
    await settled();
    expect(story.client.opened).toBe(1);
    return { story, upstream };
  }

  /** The cut answer as the client sees it: tokens, one error event, nothing that looks like an end. */
  function expectCut({ client, world }: Story, type: string, code: string): void {
    const last = client.events.at(-1) as { error: Record<string, unknown> };
    expect(last.error).toMatchObject({ type, code, request_id: 'request-1' });
    expect(client.text).toContain('"Hel"');
    expect(client.text).not.toContain('[DONE]');
    expect(client.text).not.toContain('"gateway"');
    expect(world.transport.calls).toHaveLength(1);
  }

  test.each<
    [
      name: string,
      cut: (upstream: {
        fail: (kind: 'reset') => void;
        end: () => void;
        data: (...parts: string[]) => unknown;
      }) => void,
    ]
  >([
    ['a reset', (upstream) => upstream.fail('reset')],
    ['an end without a finish', (upstream) => upstream.end()],
    ['an end marker without a finish', (upstream) => upstream.data(sse('[DONE]'))],
    [
      'an end marker before the second choice has ended',
      (upstream) =>
        upstream.data(
          sse({
            ...openAiChunk('gpt-test', {}),
            choices: [{ index: 1, delta: { content: 'Ho' }, finish_reason: null }],
          }),
          sse(openAiChunk('gpt-test', {}, 'stop')),
          sse('[DONE]'),
        ),
    ],
    ['an error event', (upstream) => upstream.data(sse(openAiError(500)))],
    ['nonsense', (upstream) => upstream.data('data: {oops\n\n')],
  ])('%s is an error event and nothing falls back', async (_name, cut) => {
    const { story, upstream } = await opened(cachedStream);
    cut(upstream);
    expect(await story.end()).toBeNull();
    expectCut(story, 'provider_error', 'upstream_interrupted');
    expect(onlyRow(story)).toMatchObject({ status: 'incomplete', provider: 'openai', ttftMs: 0 });
    expect(onlyRow(story).error).toMatch(/^provider_error: The answer is incomplete: ./);
    expect(story.world.store.entries.size).toBe(0);
    expect(story.world.telemetry.streamEnds).toEqual(['upstream_error']);
  });

  test('a stall is an error event after the idle limit, counted from the last byte', async () => {
    const { story, upstream } = await opened();
    await vi.advanceTimersByTimeAsync(59_000);
    upstream.data(token('l'));
    await vi.advanceTimersByTimeAsync(59_999);
    expect(upstream.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(upstream.aborted).toBe(true);
    await story.end();
    expectCut(story, 'provider_error', 'upstream_interrupted');
    expect(onlyRow(story)).toMatchObject({ status: 'incomplete', latencyMs: 119_000 });
    const { streamEnds, stalls } = story.world.telemetry;
    expect(streamEnds).toEqual(['idle_timeout']);
    expect(stalls).toEqual([59_000, 60_000]);
  });

  test('the limit of the whole request cuts a stream that never ends', async () => {
    const { story, upstream } = await opened();
    for (let second = 0; second < 300; second += 13) {
      await vi.advanceTimersByTimeAsync(13_000);
      if (!upstream.aborted) upstream.data(token('x'));
    }
    await story.end();
    expectCut(story, 'provider_error', 'upstream_interrupted');
    expect(onlyRow(story)).toMatchObject({ status: 'incomplete', latencyMs: 300_000 });
    expect(story.world.telemetry.streamEnds).toEqual(['upstream_error']);
  });

  test('more bytes than a stream may have cut it', async () => {
    const { story, upstream } = await opened({
      ...streamed,
      tables: testTables({ limits: { stream_bytes: 2000 } }),
    });
    for (let count = 0; count < 20 && !upstream.aborted; count += 1) upstream.data(token('again and again'));
    await story.end();
    expectCut(story, 'provider_error', 'upstream_interrupted');
    expect(onlyRow(story).error).toContain('exceeds 2000 bytes');
  });

  test('a client that leaves closes the vendor side and has one row with the tokens so far', async () => {
    const { story, upstream } = await opened(cachedStream);
    story.client.leave();
    expect(upstream.aborted).toBe(true);
    await story.end();
    expect(story.client.ended).toBe('destroyed');
    expect(onlyRow(story)).toMatchObject({ status: 'client_closed', provider: 'openai' });
    expect(story.world.telemetry.streamEnds).toEqual(['client_abort']);
    expect(story.world.store.entries.size).toBe(0);
  });

  test('a drain cuts with an error event', async () => {
    const { story, upstream } = await opened();
    story.client.controller.abort('drain');
    expect(upstream.aborted).toBe(true);
    await story.end();
    expectCut(story, 'service_unavailable_error', 'draining');
    expect(onlyRow(story).status).toBe('incomplete');
    expect(story.world.telemetry.streamEnds).toEqual(['drain_cut']);
  });

  test('a slow client pauses the vendor, and goes on when it has caught up', async () => {
    const { story, upstream } = await opened();
    story.client.ready = false;
    upstream.data(token('l'));
    expect(upstream.paused).toBe(true);
    expect(story.client.source).toBe(upstream.connectionName);
    await vi.advanceTimersByTimeAsync(59_000);
    story.client.ready = true;
    story.client.drain();
    expect(upstream.paused).toBe(false);
    await vi.advanceTimersByTimeAsync(59_000);
    upstream.data(...wholeStream.slice(2)).end();
    await story.end();
    expect(onlyRow(story).status).toBe('success');
    expect(upstream.pauses).toBe(1);
  });

  test('a client that reads nothing for a minute is let go', async () => {
    const { story, upstream } = await opened();
    story.client.ready = false;
    upstream.data(token('l'));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(upstream.aborted).toBe(true);
    await story.end();
    expect(story.client.ended).toBe('destroyed');
    expect(onlyRow(story).status).toBe('client_closed');
  });

  test('what the vendor says is shown without the key', async () => {
    const { story, upstream } = await opened();
    const secret = secretOf(heldKey('openai'));
    upstream.data(sse({ error: { message: `quota of ${secret} used up` } }));
    await story.end();
    expectCut(story, 'provider_error', 'upstream_interrupted');
    const seen = JSON.stringify([story.client.text, onlyRow(story)], (_key, value) =>
      typeof value === 'bigint' ? String(value) : value,
    );
    expect(seen).toContain('[redacted] used up');
    expect(seen).not.toContain(secret);
  });

  test('a vendor that does not close after its end marker is closed a second later, with a whole answer', async () => {
    const { story, upstream } = await opened();
    upstream.data(...wholeStream.slice(2));
    await story.end();
    expect(onlyRow(story).status).toBe('success');
    expect(upstream.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1000);
    expect(upstream.aborted).toBe(true);
    expect(story.client.ended).toBe('clean');
  });

  test('a failure after the end marker changes nothing', async () => {
    const { story, upstream } = await opened();
    upstream.data(...wholeStream.slice(2)).fail('reset');
    await story.end();
    expect(onlyRow(story).status).toBe('success');
    expect(story.client.text.endsWith('[DONE]\n\n')).toBe(true);
  });
});

describe('a request that nobody serves', () => {
  test('answers what the failures have in common, with all attempts and one row', async () => {
    const story = begin();
    const secret = secretOf(heldKey('openai'));
    (await story.world.transport.call(0)).reply(429, openAiError(429, `slow down, ${secret}`), {
      'retry-after': '7',
    });
    (await story.world.transport.call(1)).reply(429, openAiError(429), { 'retry-after': '3' });
    (await story.world.transport.call(2)).reply(429, {
      type: 'error',
      error: { type: 'rate_limit_error', message: 'x' },
    });
    const error = (await story.end()) as GatewayError;
    expect([error.status, error.headers['retry-after']]).toEqual([429, '3']);
    expect(error.attempts?.map(({ provider, status }) => [provider, status])).toEqual([
      ['openai', 429],
      ['sarvam', 429],
      ['anthropic', 429],
    ]);
    expect(JSON.stringify(error.attempts)).not.toContain(secret);
    expect(onlyRow(story)).toMatchObject({ status: 'error', provider: 'anthropic', costMicroUsd: 0n });
    expect(onlyRow(story).error).toBe('rate_limit_error: Every candidate is rate limited.');
  });

  test('stops trying when its own time is up', async () => {
    const tables = testTables({ timeouts: { request_seconds: 10, attempt_seconds: 120 } });
    const story = begin({ tables });
    await story.world.transport.call(0);
    await vi.advanceTimersByTimeAsync(10_000);
    const error = (await story.end()) as GatewayError;
    expect(error.status).toBe(502);
    expect(story.world.transport.calls).toHaveLength(1);
    expect(onlyRow(story).attempts).toHaveLength(1);
    expect(story.world.telemetry.fallbacks).toEqual([]);
  });

  test('goes on past a key that cannot be opened', async () => {
    const keys = [heldKey('openai', { label: 'cannot be opened' }), heldKey('sarvam')];
    const story = begin({}, keys);
    (await story.world.transport.call(0)).reply(200, answer);
    await story.end();
    expect(onlyRow(story)).toMatchObject({ status: 'success', provider: 'sarvam' });
    expect(onlyRow(story).attempts[0]?.reason).toMatch(/^key-unreadable/);
    expect(story.world.unopened).toEqual([[keys[0]?.id, callOf().requestId]]);
  });

  test.each<[name: string, parts: CallParts, status: number, type: string]>([
    ['for want of a key', {}, 422, 'invalid_request_error'],
    ['for want of an Indian key', { options: { residency: 'india' } }, 422, 'residency_error'],
  ])('is refused %s, with a row', async (_name, parts, status, type) => {
    const story = begin(parts, []);
    const error = (await story.end()) as GatewayError;
    expect([error.status, error.type]).toEqual([status, type]);
    expect(onlyRow(story)).toMatchObject({
      status: 'error',
      provider: 'none',
      model: 'none',
      residencyActual: parts.options?.residency ?? 'global',
      residencyBound: parts.options?.residency ?? null,
      attempts: [],
    });
    expect(onlyRow(story).error).toBe(`${type}: ${error.message}`);
  });

  test('is planned once more with fresh keys when one was missing', async () => {
    const world = new World();
    const client = new FakeClient();
    const ended = world.answerChat(callOf(), accountOf([]), client, () => Promise.resolve(accountOf()));
    (await world.transport.call(0)).reply(200, answer);
    expect(await ended).toContain('"gateway"');
    expect(world.rows).toHaveLength(1);
  });

  test('is refused as planned when the keys cannot be read afresh', async () => {
    const world = new World();
    const ended = world.answerChat(callOf(), accountOf([]), new FakeClient(), () =>
      Promise.reject(new Error('away')),
    );
    await expect(ended).rejects.toMatchObject({ code: 'no_provider_key' });
    expect(world.rows).toHaveLength(1);
  });
});

describe('an override', () => {
  const pinned: CallParts = { options: { override: { provider: 'openai', selector: null, model: 'gpt-x' } } };

  test('passes the error of the vendor on, and tries nobody else', async () => {
    const story = begin(pinned);
    (await story.world.transport.call(0)).reply(
      418,
      { odd: 1 },
      { 'retry-after': '9', 'set-cookie': 'a', 'openai-organization': 'b' },
    );
    const error = (await story.end()) as VerbatimError;
    expect(error).toBeInstanceOf(VerbatimError);
    expect([error.status, error.body.toString()]).toEqual([418, '{"odd":1}']);
    expect(error.headers).toEqual({ 'content-type': 'application/json', 'retry-after': '9' });
    expect(onlyRow(story)).toMatchObject({
      status: 'error',
      mode: 'override',
      provider: 'openai',
      model: 'gpt-x',
    });
    expect(onlyRow(story).error).toMatch(/^provider_error: upstream 418: /);
    expect(story.world.transport.calls).toHaveLength(1);
  });

  const pinnedStream: CallParts = { ...pinned, ...streamed };
  const vendorError = {
    error: { message: 'Model is warming up.', type: 'server_error', code: 'warming_up' },
  };

  test.each<[name: string, parts: CallParts, act: (upstream: FakeUpstream) => unknown]>([
    ['a JSON body', pinned, (upstream) => upstream.reply(200, vendorError)],
    ['a JSON body for a stream', pinnedStream, (upstream) => upstream.reply(200, vendorError)],
    ['an event before the first token', pinnedStream, (upstream) => upstream.stream(sse(vendorError))],
  ])('says what the vendor said in a 200: an error as %s', async (_name, parts, act) => {
    const story = begin(parts);
    act(await story.world.transport.call(0));
    const error = (await story.end()) as GatewayError;
    expect([error.status, error.type, error.code, error.message]).toEqual([
      502,
      'provider_error',
      'warming_up',
      'Model is warming up.',
    ]);
    expect(onlyRow(story).error).toBe('provider_error: Model is warming up.');
  });

  test('is searched for its key once for each header, however often the vendor sends it', async () => {
    const looks = vi.spyOn(KeyMask.prototype, 'bytes');
    const story = begin(pinned);
    const headers = { 'retry-after': Array.from({ length: 250 }, (_, index) => String(index + 9)) };
    (await story.world.transport.call(0)).reply(418, { odd: 1 }, headers);
    const error = (await story.end()) as VerbatimError;
    expect(error.headers).toEqual({ 'content-type': 'application/json', 'retry-after': '9' });
    expect(looks.mock.calls.length).toBeLessThanOrEqual(5);
    looks.mockRestore();
  });

  test.each(['connect-refused', 'reset', 'tls'] as const)(
    'is not searched where the words are ours (%s)',
    async (kind) => {
      const looks = vi.spyOn(KeyMask.prototype, 'words');
      const story = begin(pinned);
      (await story.world.transport.call(0)).fail(kind);
      expect(await story.end()).toBeInstanceOf(GatewayError);
      expect(looks).not.toHaveBeenCalled();
      looks.mockRestore();
    },
  );

  test.each([
    ['as JSON', pinned],
    ['to a stream request', pinnedStream],
  ])('answers 502 without the text of an answer that nobody ended, %s', async (_name, parts) => {
    const story = begin(parts);
    (await story.world.transport.call(0)).reply(200, withChoice({ finish_reason: null }));
    const error = (await story.end()) as GatewayError;
    expect([error.status, error.type, error.code]).toEqual([502, 'provider_error', 'answer_incomplete']);
    expect(JSON.stringify(error)).not.toContain('Hello');
    const row = onlyRow(story);
    expect(row.status).toBe('error');
    expect(row.attempts[0]?.reason).toMatch(/^incomplete: /);
    expect(JSON.stringify([row.error, row.attempts])).not.toContain('Hello');
    expect(story.client.opened).toBe(0);
  });

  test('answers 500 when an error of ours keeps the vendor from being asked', async () => {
    const bug = new RangeError('x');
    const story = begin(pinned, balancedKeys, worldWithout('openai', bug));
    const error = (await story.end()) as GatewayError;
    expect([error.status, error.type, error.message]).toEqual([500, 'api_error', 'Internal server error.']);
    expect(story.world.bugs).toEqual([bug]);
    expect(onlyRow(story)).toMatchObject({ status: 'error', error: 'api_error: Internal server error.' });
  });

  test.each<[name: string, parts: CallParts]>([
    ['an override', pinned],
    ['a streamed override', pinnedStream],
    ['a tier', {}],
    ['a streamed tier', streamed],
  ])('answers 503 when the stored key does not open, as %s', async (_name, parts) => {
    const story = begin(parts, [heldKey('openai', { label: 'cannot be opened' })]);
    const error = (await story.end()) as GatewayError;
    expect([error.status, error.type, error.code, error.headers]).toEqual([
      503,
      'service_unavailable_error',
      'stored_key_unreadable',
      { 'x-should-retry': 'false' },
    ]);
    expect(error.message).not.toMatch(/reject|refus/);
    expect(story.world.transport.calls).toHaveLength(0);
    expect(onlyRow(story)).toMatchObject({ status: 'error' });
    expect(onlyRow(story).attempts[0]?.reason).toMatch(/^key-unreadable/);
  });

  test('answers 502 that is not worth a repeat when our policy refuses the address', async () => {
    const story = begin(pinned);
    (await story.world.transport.call(0)).fail('forbidden-address');
    const error = (await story.end()) as GatewayError;
    expect([error.status, error.type, error.code, error.headers]).toEqual([
      502,
      'provider_error',
      'address_refused',
      { 'x-should-retry': 'false' },
    ]);
  });

  test('answers 502 when the vendor says nothing', async () => {
    const story = begin(pinned);
    (await story.world.transport.call(0)).fail('connect-refused');
    const error = (await story.end()) as GatewayError;
    expect([error.status, error.type, error.code]).toEqual([502, 'provider_error', 'no_upstream_answer']);
    expect(onlyRow(story).status).toBe('error');
  });
});

describe('with the cache', () => {
  /** A world whose store holds the answer to the one question of these tests. */
  async function filled(parts: CallParts): Promise<World> {
    const story = begin(parts);
    const upstream = await story.world.transport.call(0);
    if (parts.request?.stream === true) upstream.stream(...wholeStream).end();
    else upstream.reply(200, answer);
    await story.end();
    await settled();
    expect(story.world.store.entries.size).toBe(1);
    expect(story.world.store.ttls).toEqual([120]);
    expect(story.world.telemetry.cache).toEqual(['miss']);
    story.world.rows.length = 0;
    story.world.telemetry.rows.length = 0;
    return story.world;
  }

  test.each<[name: string, parts: CallParts, keys: readonly HeldKey[], cache: string]>([
    ['a call that does not ask for it', {}, balancedKeys, 'bypass'],
    ['a call that nobody can take', cached, [], 'bypass'],
    ['a question that it does not know', cached, balancedKeys, 'miss'],
  ])('the row of %s says what came of it', async (_name, parts, keys, cache) => {
    const story = begin(parts, keys);
    if (keys.length > 0) (await story.world.transport.call(0)).reply(200, answer);
    await story.end();
    expect(onlyRow(story)).toMatchObject({ cache, cachedFrom: null });
  });

  const hitRow = {
    status: 'success',
    provider: 'cache',
    model: 'openai:gpt-test',
    residencyActual: 'cache',
    cacheHit: true,
    costMicroUsd: 0n,
    savedMicroUsd: costMicroUsd,
    usage: { inputTokens: 11, outputTokens: 7 },
    attempts: [],
  };
  const hitBlock = {
    provider: 'cache',
    model: 'openai:gpt-test',
    cache_hit: true,
    cost_usd: '0.000000',
    residency_actual: 'cache',
  };

  test.each([
    ['JSON', cached],
    ['a stream', cachedStream],
  ])('an answer that came as %s is given again as JSON', async (_name, parts) => {
    const story = begin(cached, balancedKeys, await filled(parts));
    const body = JSON.parse((await story.end()) as string) as Record<string, unknown>;
    expect(body).toMatchObject({ choices: [{ message: { content: 'Hello' } }], gateway: hitBlock });
    expect(onlyRow(story)).toMatchObject({ ...hitRow, stream: false });
    expect(story.world.transport.calls).toHaveLength(1);
  });

  test.each([
    ['JSON', cached],
    ['a stream', cachedStream],
  ])('an answer that came as %s is given again as a stream', async (_name, parts) => {
    const story = begin(cachedStream, balancedKeys, await filled(parts));
    expect(await story.end()).toBeNull();
    expect(gatewayBlock(story.client)).toMatchObject(hitBlock);
    const text = deltasOf(story.client).map((delta) => (delta as { content?: string }).content ?? '');
    expect(text.join('')).toBe('Hello');
    expect(story.client.text.endsWith(doneFrame)).toBe(true);
    expect([story.client.opened, story.client.ended]).toEqual([1, 'clean']);
    expect(onlyRow(story)).toMatchObject({ ...hitRow, stream: true });
  });

  test('an equal request waits for the one under way, and is a hit with a row of its own', async () => {
    const first = begin(cached);
    const upstream = await first.world.transport.call(0);
    const second = begin(cached, balancedKeys, first.world);
    await settled();
    upstream.reply(200, answer);
    await first.end();
    expect(JSON.parse((await second.end()) as string)).toMatchObject({ gateway: hitBlock });
    expect(first.world.rows.map((row) => [row.status, row.cacheHit])).toEqual([
      ['success', false],
      ['success', true],
    ]);
    expect(first.world.transport.calls).toHaveLength(1);
  });

  test('a client that leaves does not take the answer from those who wait with it', async () => {
    const first = begin(cachedStream);
    const upstream = (await first.world.transport.call(0)).stream(role, token('Hel'));
    await settled();
    const second = begin(cached, balancedKeys, first.world);
    await settled();
    first.client.leave();
    expect(upstream.aborted).toBe(false);
    upstream.data(...wholeStream.slice(2)).end();
    await first.end();
    expect(await second.end()).toContain('Hello');
    expect(first.world.rows.map((row) => [row.status, row.cacheHit])).toEqual([
      ['client_closed', false],
      ['success', true],
    ]);
  });

  test('of those who wait when the one under way fails, one goes on and the others wait on', async () => {
    const keys = [heldKey('openai')];
    const first = begin(cached, keys);
    const { transport } = first.world;
    const upstream = await transport.call(0);
    const others = Array.from({ length: 9 }, () => begin(cached, keys, first.world));
    await settled();
    upstream.reply(500, openAiError(500));
    expect(await first.end()).toBeInstanceOf(GatewayError);
    (await transport.call(1)).reply(500, openAiError(500));
    expect(await others[0]?.end()).toBeInstanceOf(GatewayError);
    (await transport.call(2)).reply(200, answer);
    expect(await others[1]?.end()).toContain('"cache_hit":false');
    for (const other of others.slice(2)) expect(await other.end()).toContain('"cache_hit":true');
    expect(transport.calls).toHaveLength(3);
    expect(first.world.rows.map(({ status }) => status).toSorted()).toEqual([
      'error',
      'error',
      ...Array<string>(8).fill('success'),
    ]);
  });

  test('of those who wait when the stream under way is cut, one goes on', async () => {
    const first = begin(cachedStream);
    const upstream = (await first.world.transport.call(0)).stream(role, token('Hel'));
    await settled();
    const others = [0, 1].map(() => begin(cached, balancedKeys, first.world));
    await settled();
    upstream.fail('reset');
    await first.end();
    (await first.world.transport.call(1)).reply(200, answer);
    for (const other of others) expect(await other.end()).toContain('Hello');
    expect(first.world.transport.calls).toHaveLength(2);
  });

  test('whoever waits has its own limit, and then goes on alone', async () => {
    const first = begin(cached);
    const upstream = await first.world.transport.call(0);
    const second = begin({ options: { ...cached.options, timeoutMs: 2000 } }, balancedKeys, first.world);
    await settled();
    await vi.advanceTimersByTimeAsync(1999);
    expect(first.world.transport.calls).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    const own = await first.world.transport.call(1);
    await vi.advanceTimersByTimeAsync(1999);
    own.reply(200, answer);
    expect(await second.end()).toContain('"cache_hit":false');
    expect(upstream.aborted).toBe(false);
    upstream.reply(200, answer);
    expect(await first.end()).toContain('Hello');
  });

  test('whoever waits goes on when the one under way gives up after a shorter limit', async () => {
    const keys = [heldKey('openai')];
    const first = begin({ options: { ...cached.options, timeoutMs: 1000 } }, keys);
    await first.world.transport.call(0);
    const second = begin(cached, keys, first.world);
    await settled();
    await vi.advanceTimersByTimeAsync(1000);
    expect(await first.end()).toBeInstanceOf(GatewayError);
    (await first.world.transport.call(1)).reply(200, answer);
    expect(await second.end()).toContain('Hello');
  });

  test('whoever waits goes on at once when the answer is not to be shared', async () => {
    const first = begin(cached);
    const upstream = await first.world.transport.call(0);
    const others = [0, 1].map(() => begin(cached, balancedKeys, first.world));
    await settled();
    upstream.reply(200, withChoice({ message: { content: '' } }));
    await first.end();
    await settled();
    expect(first.world.transport.calls).toHaveLength(3);
    for (const call of first.world.transport.calls.slice(1)) call.reply(200, answer);
    for (const other of others) expect(await other.end()).toContain('"cache_hit":false');
  });

  test('whoever waits goes on when the one under way fails', async () => {
    const first = begin(cached, [heldKey('openai')]);
    const upstream = await first.world.transport.call(0);
    const second = begin(cached, [heldKey('openai')], first.world);
    await settled();
    upstream.reply(500, openAiError(500));
    expect(await first.end()).toBeInstanceOf(GatewayError);
    (await first.world.transport.call(1)).reply(200, answer);
    expect(await second.end()).toContain('Hello');
    expect(first.world.rows.map(({ status }) => status)).toEqual(['error', 'success']);
  });

  test('a client that leaves while waiting has its row and costs no call', async () => {
    const first = begin(cached);
    const upstream = await first.world.transport.call(0);
    const second = begin(cached, balancedKeys, first.world);
    await settled();
    second.client.leave();
    expect(await second.end()).toBeInstanceOf(ClientGoneError);
    upstream.reply(200, answer);
    await first.end();
    expect(first.world.rows.map(({ status }) => status)).toEqual(['client_closed', 'success']);
    expect(first.world.transport.calls).toHaveLength(1);
  });

  test('an unreadable entry is a miss', async () => {
    const world = await filled(cached);
    for (const key of world.store.entries.keys()) world.store.entries.set(key, Buffer.from('{"old":1}'));
    const story = begin(cached, balancedKeys, world);
    (await world.transport.call(1)).reply(200, answer);
    expect(await story.end()).toContain('"cache_hit":false');
  });

  test('an answer for one user, residency or body is not given to another', async () => {
    const world = await filled(cached);
    const others: CallParts[] = [
      { ...cached, userId: 'user-2' },
      { options: { cacheTtlSeconds: 120, residency: 'india' } },
      { ...cached, request: { temperature: 0.5 } },
      {
        options: {
          cacheTtlSeconds: 120,
          override: { provider: 'openai', selector: null, model: 'gpt-test' },
        },
      },
    ];
    for (const [index, parts] of others.entries()) {
      const story = begin(parts, balancedKeys, world);
      (await world.transport.call(index + 1)).reply(200, answer);
      expect(await story.end()).toContain('"cache_hit":false');
    }
  });

  test.each<[name: string, parts: CallParts, act: (upstream: FakeUpstream) => unknown]>([
    ['without a word', cached, (upstream) => upstream.reply(200, withChoice({ message: { content: '' } }))],
    [
      'with fewer choices than were asked for',
      { ...cached, request: { n: 3 } },
      (upstream) => upstream.reply(200, openAiAnswer('gpt-test', { choices: 2 })),
    ],
    [
      'as a stream with fewer choices than were asked for',
      { ...cachedStream, request: { n: 2, stream: true } },
      (upstream) => upstream.stream(...wholeStream).end(),
    ],
    [
      'as a stream without a word',
      cachedStream,
      (upstream) => upstream.stream(role, sse(openAiChunk('gpt-test', {}, 'stop')), sse('[DONE]')).end(),
    ],
  ])('an answer %s is served, and not stored', async (_name, parts, act) => {
    const story = begin(parts);
    act(await story.world.transport.call(0));
    await story.end();
    await settled();
    expect(onlyRow(story).status).toBe('success');
    expect(story.world.transport.calls).toHaveLength(1);
    expect(story.world.store.entries.size).toBe(0);
  });

  test('an error is not stored', async () => {
    const story = begin(cached, [heldKey('openai')]);
    (await story.world.transport.call(0)).reply(500, openAiError(500));
    await story.end();
    await settled();
    expect(story.world.store.entries.size).toBe(0);
  });

  test.each([
    ['JSON', cached],
    ['a stream', cachedStream],
  ])('an answer as %s is not stored when it is larger than the tables allow', async (_name, parts) => {
    const tables = testTables({ limits: { cache_entry_bytes: 100 } });
    const story = begin({ ...parts, tables });
    const upstream = await story.world.transport.call(0);
    const text = ['x'.repeat(60), 'y'.repeat(60)];
    if (parts.request?.stream === true) upstream.stream(...openAiStream('m', { text })).end();
    else upstream.reply(200, openAiAnswer('m', { text }));
    await story.end();
    await settled();
    expect(onlyRow(story).status).toBe('success');
    expect(story.world.store.entries.size).toBe(0);
  });
});
