/** A bug of ours, at every place of the story: the client gets an end, the row is written once, and somebody is told. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { encodeStoredAnswer, storedAnswer } from '../../src/chat/stored-answer.ts';
import { noUsage } from '../../src/core/answer/usage.ts';
import { ApiError, InvalidRequestError } from '../../src/core/errors.ts';
import { StoreAway } from '../../src/core/store-away.ts';
import type { StreamTranslator } from '../../src/providers/provider.ts';
import { providers } from '../../src/providers/registry.ts';
import { openAiAnswer, openAiStream } from '../harness/vendors/openai-wire.ts';
import type { CallParts } from './story.ts';
import { accountOf, callOf, candidateOf, FakeClient, heldKey, World } from './story.ts';
import { expectNobodyWaits } from './watched-dues.ts';

const bug = new Error('a bug');
const fails = (): never => {
  throw bug;
};

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
});

afterEach(() => {
  expectNobodyWaits();
  vi.useRealTimers();
});

const answer = openAiAnswer('gpt-test', { text: ['Hello'] });

/** Replaces a part of the real translator of a stream. */
function breakTranslator(world: World, change: (real: StreamTranslator) => Partial<StreamTranslator>): void {
  const { openai } = providers;
  const streamTranslator: typeof openai.streamTranslator = (context) => {
    const real = openai.streamTranslator(context);
    const broken = change(real);
    return new Proxy(real, {
      get: (target, name) => {
        const source = name in broken ? broken : target;
        const value = Reflect.get(source, name, source) as unknown;
        return typeof value === 'function' ? value.bind(source) : value;
      },
    });
  };
  Object.assign(world.deps, { providers: { ...providers, openai: { ...openai, streamTranslator } } });
}

interface Case {
  readonly parts: CallParts;
  readonly break: (world: World, client: FakeClient) => void;
  /** True: the vendor is asked. */
  readonly asked: boolean;
  /** The stream was open already. */
  readonly open: boolean;
}

const streamed: CallParts = { request: { stream: true } };
const cached: CallParts = { options: { cacheTtlSeconds: 60 } };
const cachedStream: CallParts = { ...streamed, ...cached };

function storeAnswer(world: World): void {
  const call = callOf(cached);
  const json = JSON.stringify(answer);
  const stored = storedAnswer(
    call,
    candidateOf('openai', call.tables),
    answer as never,
    { json, bytes: json.length },
    noUsage,
    0n,
  );
  world.store.get = () => Promise.resolve(encodeStoredAnswer(stored as never));
}

const telemetryBug =
  (name: string) =>
  (world: World): void =>
    void Object.assign(world.telemetry, { [name]: fails });

const cases: Record<string, Case> = {
  'the plan': {
    parts: {},
    break: (world) => void Object.assign(world.breakers, { holdsBack: fails }),
    asked: false,
    open: false,
  },
  'telling of the plan': { parts: {}, break: telemetryBug('planned'), asked: false, open: false },
  'the cache': {
    parts: cached,
    break: (world) => void Object.assign(world.deps.cache, { join: () => Promise.reject(bug) }),
    asked: false,
    open: false,
  },
  'telling of the cache': {
    parts: cached,
    break: (world) => {
      storeAnswer(world);
      telemetryBug('cacheHit')(world);
    },
    asked: false,
    open: false,
  },
  'telling of an attempt': { parts: {}, break: telemetryBug('attemptStarted'), asked: false, open: false },
  'the translation of a request': {
    parts: {},
    break: (world) =>
      void Object.assign(world.deps, {
        providers: { openai: { ...providers.openai, translateRequest: fails } },
      }),
    asked: false,
    open: false,
  },
  'the translation of an answer': {
    parts: {},
    break: (world) =>
      void Object.assign(world.deps, {
        providers: { openai: { ...providers.openai, translateAnswer: fails } },
      }),
    asked: true,
    open: false,
  },
  'the head of an answer': { parts: {}, break: telemetryBug('answerBegan'), asked: true, open: false },
  'the end of an attempt': { parts: {}, break: telemetryBug('attemptEnded'), asked: true, open: false },
  'a stream before its first token': {
    parts: streamed,
    break: (world) => breakTranslator(world, () => ({ push: fails })),
    asked: true,
    open: false,
  },
  'a stream after its first token': {
    parts: streamed,
    break: (world) => {
      let pushes = 0;
      breakTranslator(world, (real) => ({
        push: (bytes: Buffer) => {
          pushes += 1;
          return pushes > 3 ? fails() : real.push(bytes);
        },
      }));
    },
    asked: true,
    open: true,
  },
  'the write to a client': {
    parts: streamed,
    break: (_world, client) => void Object.assign(client, { write: fails }),
    asked: true,
    open: true,
  },
  'telling of an open stream': {
    parts: streamed,
    break: telemetryBug('streamOpened'),
    asked: true,
    open: true,
  },
  'telling of a closed stream': {
    parts: streamed,
    break: telemetryBug('streamClosed'),
    asked: true,
    open: true,
  },
  'the usage of a stream': {
    parts: streamed,
    break: (world) =>
      breakTranslator(world, () => ({
        get wireUsage() {
          return fails();
        },
      })),
    asked: true,
    open: true,
  },
  'the replay of a stored answer': {
    parts: cachedStream,
    break: (world, client) => {
      storeAnswer(world);
      Object.assign(client, { write: fails });
    },
    asked: false,
    open: true,
  },
  'the replay of a whole answer': {
    parts: streamed,
    break: (_world, client) => void Object.assign(client, { write: fails }),
    asked: true,
    open: true,
  },
  'the row': {
    parts: {},
    break: (world) => {
      const { newId } = world.deps;
      let calls = 0;
      Object.assign(world.deps, {
        newId: () => {
          calls += 1;
          return calls === 1 ? fails() : newId();
        },
      });
    },
    asked: true,
    open: false,
  },
};

describe('a bug in telling of the row', () => {
  test('is told, and the answer of the row goes out', async () => {
    const world = new World();
    telemetryBug('settled')(world);
    const ended = world.answerChat(callOf(), accountOf([heldKey('openai')]), new FakeClient(), () =>
      Promise.resolve(null),
    );
    (await world.transport.call(0)).reply(200, answer);
    expect(await ended).toContain('"gateway"');
    expect(world.rows).toMatchObject([{ status: 'success' }]);
    expect(world.bugs).toEqual([bug]);
  });
});

describe('a bug that a stream meets outside of its bytes', () => {
  async function opened(world: World, client: FakeClient) {
    const ended = world.answerChat(callOf(streamed), accountOf([heldKey('openai')]), client, () =>
      Promise.resolve(null),
    );
    const call = await world.transport.call(0);
    call.stream();
    for (const event of openAiStream('gpt-test', { text: ['Hel', 'lo'] }).slice(0, 2)) call.data(event);
    return {
      call,
      ended: ended.catch((error: unknown) => (error instanceof ApiError ? error.cause : error)),
    };
  }

  test.each<
    [
      when: string,
      happen: (client: FakeClient) => unknown,
      breakIt: (world: World, client: FakeClient) => void,
    ]
  >([
    [
      'when its client leaves',
      (client) => client.controller.abort('client-gone'),
      (world) =>
        breakTranslator(world, () => ({
          get answerEnded() {
            return fails();
          },
        })),
    ],
    [
      'when its answer begins',
      () => undefined,
      (_world, client) => void Object.assign(client, { open: fails }),
    ],
    ['when its vendor is silent', () => vi.advanceTimersByTimeAsync(600_000), telemetryBug('streamStalled')],
  ])('%s ends it, with one row, and is told', async (_when, happen, breakIt) => {
    const world = new World();
    const client = new FakeClient();
    breakIt(world, client);
    const { call, ended } = await opened(world, client);
    await vi.advanceTimersByTimeAsync(1);
    await happen(client);
    expect([await ended, ...world.bugs]).toContain(bug);
    expect(world.rows).toHaveLength(1);
    expect(call.aborted).toBe(true);
    expect(client.text).not.toContain('[DONE]');
  });
});

describe.each(Object.entries(cases))('a bug in %s', (name, { parts, break: breakIt, asked, open }) => {
  test('ends the request, with one row, and is told', async () => {
    const world = new World();
    const client = new FakeClient();
    breakIt(world, client);
    const ended = world
      .answerChat(callOf(parts), accountOf([heldKey('openai')]), client, () => Promise.resolve(null))
      .then(
        (json) => ({ json }),
        (thrown: unknown) => ({ thrown }),
      );
    if (asked) {
      const call = await world.transport.call(0);
      if (parts.request?.stream !== true || name === 'the replay of a whole answer') call.reply(200, answer);
      else {
        call.stream();
        for (const event of openAiStream('gpt-test', { text: ['Hel', 'lo', '!'] })) call.data(event);
        call.end();
      }
    }
    await vi.advanceTimersByTimeAsync(2_000);
    const end = await ended;
    expect(world.rows).toHaveLength(1);
    if (open) {
      expect(end).toEqual({ json: null });
      expect(client.ended).toBe('clean');
      expect(client.text).toContain('"error"');
      expect(client.text).not.toContain('[DONE]');
      expect(world.bugs).toContain(bug);
    } else {
      const thrown = (end as { thrown?: unknown }).thrown;
      const told = [...world.bugs, thrown instanceof ApiError ? thrown.cause : null];
      expect(told).toContain(bug);
      expect(client.opened).toBe(0);
    }
  });
});

describe('a second look at the keys, for want of one, that fails', () => {
  test.each([
    ['since Postgres is away: nobody is told', new StoreAway(new Error('connect'), false), []],
    ['by a bug: it is told', bug, [bug]],
  ])('%s', async (_name, cause, told) => {
    const world = new World();
    const refused = world.answerChat(callOf(), accountOf([]), new FakeClient(), () => Promise.reject(cause));
    await expect(refused).rejects.toBeInstanceOf(InvalidRequestError);
    expect(world.bugs).toEqual(told);
    expect(world.rows).toHaveLength(1);
  });
});
