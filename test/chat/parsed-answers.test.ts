/**
 * Whole answers whose values take many times their bytes once they are parsed: as many as there is room for are under
 * way at once, wherever they come from and however they go out. The rest is refused before it is parsed.
 */
import { describe, expect, test } from 'vitest';
import { smallAnswerBytes } from '../../src/chat/answer-budget.ts';
import { accountOf, callOf, FakeClient, heldKey, settled, World } from './story.ts';

const keys = [heldKey('openai')];
const atOnce = 12;

/** An answer below the size from which bytes alone count. */
function answerWith(extra: unknown): string {
  const message = { role: 'assistant', content: 'yes', extra };
  const json = JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  });
  if (json.length > smallAnswerBytes) throw new RangeError('no small answer');
  return json;
}

const shapes: readonly (readonly [string, unknown])[] = [
  ['empty objects', Array.from({ length: 20_000 }, () => ({}))],
  ['empty lists', Array.from({ length: 20_000 }, () => [])],
  ['numbers', Array.from({ length: 30_000 }, () => 1)],
  ['fields', Array.from({ length: 8_000 }, () => ({ a: 1 }))],
];

function begin(world: World, stream: boolean, cacheTtlSeconds: number | null) {
  const client = new FakeClient();
  client.ready = false;
  const call = callOf({ request: { stream }, options: { cacheTtlSeconds } });
  const ended = world.answerChat(call, accountOf(keys), client, () => Promise.resolve(null));
  const outcome = ended.then(
    () => 'answered',
    (error: { code?: string }) => error.code,
  );
  return { client, outcome };
}

type Begun = ReturnType<typeof begin>;

/** How many were opened or refused in each turn of the event loop that had any, until all were. */
async function takenPerTurn(begun: readonly Begun[]): Promise<number[]> {
  let refused = 0;
  for (const { client, outcome } of begun) void outcome.then(() => (refused += Number(client.opened === 0)));
  const taken: number[] = [];
  for (let before = 0; before < begun.length; ) {
    await new Promise(setImmediate);
    const now = begun.filter(({ client }) => client.opened > 0).length + refused;
    if (now > before) taken.push(now - before);
    before = now;
  }
  return taken;
}

/** As many as could begin before the first had ended. */
async function expectBounded(world: World, begun: readonly Begun[], letGo: () => void): Promise<void> {
  await settled();
  expect(world.heldAnswerBytes).toBeGreaterThan(0);
  expect(world.answersFullness).toBeLessThanOrEqual(1);
  letGo();
  for (const { client } of begun)
    while (client.opened > 0 && client.ended === null) {
      client.ready = true;
      client.drain();
      await settled();
    }
  const outcomes = await Promise.all(begun.map(({ outcome }) => outcome));
  expect(outcomes.filter((outcome) => outcome === 'answered').length).toBeGreaterThan(0);
  expect(outcomes.filter((outcome) => outcome === 'no_room').length).toBeGreaterThan(0);
  expect(new Set(outcomes)).toEqual(new Set(['answered', 'no_room']));
  expect(world.heldAnswerBytes).toBe(0);
}

describe.each(shapes)('answers of many %s', (_name, extra) => {
  const json = answerWith(extra);

  test.each([
    ['as a stream', true],
    ['as JSON', false],
  ])('are bounded when vendors end them in one turn, %s', async (_form, stream) => {
    const world = new World();
    let commit = (): void => undefined;
    world.commit = new Promise((resolve) => {
      commit = resolve;
    });
    const begun = Array.from({ length: atOnce }, () => begin(world, stream, null));
    for (let at = 0; at < atOnce; at += 1) (await world.transport.call(at)).reply(200, json);
    await expectBounded(world, begun, commit);
  });

  test('are bounded, and taken up by one in a turn, when they are replayed from the cache to clients that do not read', async () => {
    const world = new World();
    const first = begin(world, false, 60);
    (await world.transport.call(0)).reply(200, json);
    expect(await first.outcome).toBe('answered');
    await settled();
    const begun = Array.from({ length: atOnce }, () => begin(world, true, 60));
    expect(await takenPerTurn(begun)).toEqual(Array(atOnce).fill(1));
    await expectBounded(world, begun, () => undefined);
    expect(world.transport.calls).toHaveLength(1);
  });

  test('are taken up by one in a turn of the event loop of those who waited for one call', async () => {
    const world = new World();
    const begun = Array.from({ length: atOnce }, () => begin(world, true, 60));
    (await world.transport.call(0)).reply(200, json);
    expect(await takenPerTurn(begun)).toEqual(Array(atOnce).fill(1));
    for (const { client } of begun) client.leave();
    await Promise.all(begun.map(({ outcome }) => outcome));
  });

  test('are parsed for nobody who leaves while others of those who waited have their turn', async () => {
    const world = new World();
    const begun = Array.from({ length: atOnce }, () => begin(world, true, 60));
    (await world.transport.call(0)).reply(200, json);
    await new Promise(setImmediate);
    const waiting = begun.filter(({ client }) => client.opened === 0);
    expect(waiting.length).toBeGreaterThan(2);
    for (const { client } of begun) client.leave();
    await Promise.all(begun.map(({ outcome }) => outcome));
    expect(waiting.filter(({ client }) => client.opened > 0)).toEqual([]);
    expect(new Set(world.rows.map(({ status }) => status))).toEqual(new Set(['client_closed']));
  });

  test('are bounded when one call answers all who wait for it', async () => {
    const world = new World();
    const begun = Array.from({ length: atOnce }, () => begin(world, true, 60));
    (await world.transport.call(0)).reply(200, json);
    await takenPerTurn(begun);
    await expectBounded(world, begun, () => undefined);
    expect(world.transport.calls).toHaveLength(1);
  });
});

test('answers of a few hundred values are never refused', async () => {
  const world = new World();
  const json = answerWith(Array.from({ length: 300 }, () => ({})));
  const begun = Array.from({ length: 40 }, () => begin(world, false, null));
  for (let at = 0; at < begun.length; at += 1) (await world.transport.call(at)).reply(200, json);
  expect(new Set(await Promise.all(begun.map(({ outcome }) => outcome)))).toEqual(new Set(['answered']));
});
