/** The states of an exchange: which may follow which, how long each lasts, and that every end lets go of everything. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Exchange } from '../../src/chat/exchange.ts';
import { clientStallMs, lingerMs, usageReadMs } from '../../src/chat/exchange-limits.ts';
import type { ExchangeState, ExchangeTimes } from '../../src/chat/exchange-state.ts';
import { dueMs, exchangeMoves, movedTo } from '../../src/chat/exchange-state.ts';
import type { ExchangeEnd, ExchangeJob, StreamEnd } from '../../src/chat/open-stream.ts';
import type { UpstreamCall } from '../../src/chat/ports.ts';
import { providers } from '../../src/providers/registry.ts';
import { openAiStream } from '../harness/vendors/openai-wire.ts';
import type { FakeUpstream } from './story.ts';
import { callOf, FakeTransport, World } from './story.ts';
import { expectNobodyWaits, watchedDues } from './watched-dues.ts';

const states = Object.keys(exchangeMoves) as ExchangeState[];

describe('moves', () => {
  const pairs = states.flatMap((from) => states.map((to) => [from, to] as const));

  test.each(pairs)('from %s to %s', (from, to) => {
    if (exchangeMoves[from].includes(to)) expect(movedTo(to, from)).toBe(to);
    else expect(() => movedTo(to, from)).toThrow(`is ${from} cannot become ${to}`);
  });

  test('every state but the first is reached, and every one but the last is left', () => {
    const reached = new Set(Object.values(exchangeMoves).flat());
    expect(states.filter((state) => !reached.has(state))).toEqual(['connecting']);
    expect(states.filter((state) => exchangeMoves[state].length === 0)).toEqual(['closed']);
  });
});

describe('times', () => {
  const times: ExchangeTimes = {
    attemptDueMs: 10_000,
    requestDueMs: 100_000,
    idleMs: 30_000,
    answeredAtMs: 7_000,
    lastActivityMs: 5_000,
    pausedAtMs: null,
  };
  const paused = { pausedAtMs: 6_000 };
  const late = { requestDueMs: 1_000 };

  test.each<[ExchangeState, Partial<ExchangeTimes>, number]>([
    ['connecting', {}, 10_000],
    ['whole-body', {}, 10_000],
    ['prefix', {}, 10_000],
    ['streaming', {}, 5_000 + 30_000],
    ['streaming', paused, 6_000 + clientStallMs],
    ['usage-only', {}, 7_000 + usageReadMs],
    ['usage-only', paused, 7_000 + usageReadMs],
    ['lingering', {}, 7_000 + lingerMs],
    ['lingering', paused, 7_000 + lingerMs],
    ['lingering', late, 7_000 + lingerMs],
    ...(['connecting', 'whole-body', 'prefix', 'streaming', 'usage-only'] as const).map(
      (state): [ExchangeState, Partial<ExchangeTimes>, number] => [state, { ...paused, ...late }, 1_000],
    ),
    ['closed', {}, Number.POSITIVE_INFINITY],
  ])('%s with %j is over at %d', (state, change, expected) => {
    expect(dueMs(state, { ...times, ...change })).toBe(expected);
  });
});

/** One exchange of a stream, and what came of it. */
class Run {
  readonly ends: ExchangeEnd[] = [];
  readonly streamEnds: StreamEnd[] = [];
  readonly transport = new FakeTransport();
  readonly controller = new AbortController();
  readonly listening: [added: number, removed: number] = [0, 0];
  readonly exchange: Exchange;
  readonly stalls: readonly number[];

  constructor() {
    const world = new World();
    this.stalls = world.telemetry.stalls;
    const { signal } = this.controller;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...given: unknown[]) => {
      this.listening[0] += 1;
      Reflect.apply(addEventListener, signal, given);
    };
    signal.removeEventListener = (...given: unknown[]) => {
      this.listening[1] += 1;
      Reflect.apply(removeEventListener, signal, given);
    };
    const nowMs = performance.now();
    const job: ExchangeJob = {
      call: callOf({ request: { stream: true } }),
      upstreamCall: {} as UpstreamCall,
      translator: providers.openai.streamTranslator({
        model: 'm',
        facts: callOf().tables.facts('openai', 'm'),
        form: null,
        fallbackId: 'f',
        createdSeconds: 1,
        maxEventBytes: 10_000,
        choices: 1,
      }),
      attemptDueMs: nowMs + 30_000,
      requestDueMs: nowMs + 600_000,
      startedAtMs: nowMs,
      monotonicMs: () => performance.now(),
      dues: watchedDues(),
      signal,
      telemetry: world.telemetry,
      answers: world.answers,
      redact: (texts) => texts,
    };
    this.exchange = new Exchange(job, (end) => void this.ends.push(end));
  }

  start(): FakeUpstream {
    this.exchange.start(this.transport);
    return this.transport.calls[0] as FakeUpstream;
  }

  /** Takes what comes; `onBytes` may throw. */
  attach(onBytes: () => void = () => undefined): void {
    this.exchange.attach({ onBytes, onEnd: (end) => void this.streamEnds.push(end) });
  }
}

const [role = '', token = '', ...rest] = openAiStream('m', { text: ['Hello'] });
const finish = rest.slice(0, -1);
const bug = new Error('a bug');
const fails = (): never => {
  throw bug;
};

describe('an exchange', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
  });

  afterEach(() => {
    expectNobodyWaits();
    vi.useRealTimers();
  });

  test('whose transport throws has ended, and holds nothing', () => {
    const run = new Run();
    run.exchange.start({ send: fails });
    expect(run.ends).toEqual([{ kind: 'broken', cause: bug }]);
    expect(run.listening).toEqual([1, 1]);
  });

  test.each<[what: string, act: (upstream: FakeUpstream) => void]>([
    ['bytes', (upstream) => upstream.data('x')],
    ['the end', (upstream) => upstream.end()],
  ])('with %s before its head is a bug of ours', (_what, act) => {
    const run = new Run();
    const upstream = run.start();
    act(upstream);
    expect(run.ends.map(({ kind }) => kind)).toEqual(['broken']);
    expect(upstream.aborted).toBe(true);
  });

  test('with two heads is a bug of ours', () => {
    const run = new Run();
    const upstream = run.start().head(200, { 'content-type': 'text/event-stream' });
    upstream.head(200, { 'content-type': 'text/event-stream' });
    expect(run.ends.map(({ kind }) => kind)).toEqual(['broken']);
    expect(run.listening).toEqual([1, 1]);
  });

  test('is silent after its end, whatever still comes', () => {
    const run = new Run();
    const upstream = run.start();
    upstream.fail('reset');
    upstream.head(503).data('x').end();
    upstream.fail('reset');
    run.controller.abort('client-gone');
    expect(run.ends.map(({ kind }) => kind)).toEqual(['transport']);
    expect(run.listening).toEqual([1, 1]);
  });

  test.each<[when: string, events: readonly string[], end: StreamEnd['kind'], aborted: boolean]>([
    ['while the stream is open', [role, token], 'broken', true],
    ['behind its end', [role, token, ...finish, 'data: [DONE]\n\n'], 'broken', false],
  ])('whose consumer throws %s ends its stream once', (_when, events, end, aborted) => {
    const run = new Run();
    const upstream = run.start().stream(...events);
    run.attach(fails);
    expect(run.streamEnds.map(({ kind }) => kind)).toEqual([end]);
    expect(upstream.aborted).toBe(aborted);
    upstream.end();
  });

  test('that waits for usage only waits no longer because somebody does not keep up', async () => {
    const run = new Run();
    const upstream = run.start().stream(role, token, ...finish);
    run.attach();
    run.controller.abort('client-gone');
    run.exchange.pause();
    await vi.advanceTimersByTimeAsync(usageReadMs);
    expect(run.streamEnds).toEqual([{ kind: 'cancelled', reason: 'client-gone' }]);
    expect(upstream.aborted).toBe(true);
  });

  test.each([
    [5_000, []],
    [5_001, [5_001]],
  ])('whose vendor pauses within its answer for %i ms tells of %j', async (pauseMs, told) => {
    const run = new Run();
    const upstream = run.start().stream(role);
    // Before the first token a model thinks.
    await vi.advanceTimersByTimeAsync(8_000);
    upstream.data(token);
    run.attach();
    await vi.advanceTimersByTimeAsync(pauseMs);
    upstream.data(...finish, 'data: [DONE]\n\n').end();
    expect(run.stalls).toEqual(told);
  });

  test('that lingers ends when its vendor does, or a second later', async () => {
    const [ended, silent] = [new Run(), new Run()];
    const [kept, dropped] = [ended, silent].map((run) => {
      const upstream = run.start().stream(role, token, ...finish, 'data: [DONE]\n\n');
      run.attach();
      return upstream;
    });
    kept?.end();
    await vi.advanceTimersByTimeAsync(lingerMs);
    expect([kept?.aborted, dropped?.aborted]).toEqual([false, true]);
    for (const run of [ended, silent]) {
      expect(run.streamEnds).toEqual([{ kind: 'complete' }]);
      expect(run.listening).toEqual([1, 1]);
    }
  });
});
