import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../src/core/errors.ts';
import { openAiAnswer, openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import type { CallParts } from './story.ts';
import { accountOf, balancedKeys, callOf, FakeClient, World } from './story.ts';

/**
 * Choices are told apart by their index alone: one that lies outside 0..127 or is said twice is no answer, whether the
 * vendor sends it as JSON or as a stream, and whichever of the two the client asked for.
 */

const openai = { provider: 'openai', selector: null, model: 'gpt-test' } as const;

function begin(parts: CallParts) {
  const world = new World();
  const client = new FakeClient();
  const end = world.answerChat(callOf(parts), accountOf(balancedKeys), client, () => Promise.resolve(null));
  return { world, client, end: end.catch((error: unknown) => error) };
}

/** An index as the vendor writes it; undefined: it writes none. */
type Written = string | undefined;

/** A whole answer with a choice of each index, `said 0`, `said 1` and so on. */
function answerOf(indexes: readonly Written[]): string {
  const choices = indexes.map((index, position) => {
    const message = JSON.stringify({ role: 'assistant', content: `said ${position}` });
    return `{${index === undefined ? '' : `"index":${index},`}"message":${message},"finish_reason":"stop"}`;
  });
  const rest = JSON.stringify({ ...openAiAnswer('m'), choices: undefined });
  return `${rest.slice(0, -1)},"choices":[${choices.join(',')}]}`;
}

/** One event with a choice of this index, as `openAiChunk` makes it otherwise. */
const eventOf = (index: string): string =>
  sse(
    JSON.stringify(openAiChunk('m', { role: 'assistant', content: 'Hi' })).replace(
      '"index":0',
      `"index":${index}`,
    ),
  );

const outside = ['-1', '128', '1000000', '9007199254740991', '1.5', '1e20', '12345678901234567890', '1e400'];
const repeated: readonly (readonly Written[])[] = [
  ['0', '0'],
  ['7', '7'],
  ['0', '1', '0'],
  ['-0', '0'],
  ['1.0', '1'],
  // What has no index has that of its place.
  ['1', undefined],
  [undefined, '0'],
];
const broken = [...outside.flatMap((index) => [[index], ['0', index]]), ...repeated];

const named = (indexes: readonly Written[]) => indexes.map((index) => index ?? 'none').join(' and ');
const cases = [true, false].flatMap((stream) =>
  broken.map(
    (indexes) => [named(indexes), stream ? 'a stream' : 'JSON', { stream, body: answerOf(indexes) }] as const,
  ),
);

describe.each(cases)(
  'an answer of indexes %s to a client that asked for %s',
  (_name, _asked, { stream, body }) => {
    test('is passed over by a tier', async () => {
      const { world, client, end } = begin({ request: { stream } });
      (await world.transport.call(0)).reply(200, body);
      (await world.transport.call(1)).reply(200, openAiAnswer('m', { text: ['Second'] }));
      const shown = JSON.stringify(await end) + client.text;
      expect(shown).toContain('Second');
      expect(shown).not.toContain('said');
      expect(world.telemetry.fallbacks).toEqual(['openai unreadable sarvam']);
    });

    test('is 502 for an override', async () => {
      const { world, client, end } = begin({ request: { stream }, options: { override: openai } });
      (await world.transport.call(0)).reply(200, body);
      const error = await end;
      if (!(error instanceof GatewayError)) throw new Error('it was answered');
      expect([error.status, error.type]).toEqual([502, 'provider_error']);
      expect(client.opened).toBe(0);
      expect(world.telemetry.rows.map(({ status }) => status)).toEqual(['error']);
    });
  },
);

test.each(outside)('a stream of index %s is passed over as well', async (index) => {
  const { world, client, end } = begin({ request: { stream: true } });
  (await world.transport.call(0)).stream(eventOf(index)).end();
  (await world.transport.call(1)).reply(200, openAiAnswer('m', { text: ['Second'] }));
  await end;
  expect(client.text).toContain('Second');
});

test.each<[written: readonly Written[], shown: readonly number[]]>([
  [['0'], [0]],
  [['127'], [127]],
  [
    ['1', '0'],
    [1, 0],
  ],
  [
    ['5', '127', '0'],
    [5, 127, 0],
  ],
  [[undefined], [0]],
  [['null'], [0]],
  [['"4"'], [0]],
  [
    [undefined, undefined],
    [0, 1],
  ],
])('an answer of indexes %j is one, with %j', async (written, shown) => {
  const plain = begin({ request: {} });
  (await plain.world.transport.call(0)).reply(200, answerOf(written));
  const { choices } = JSON.parse((await plain.end) as string) as {
    choices: { index: number; message: { content: string } }[];
  };
  expect(choices.map(({ index, message }) => [index, message.content])).toEqual(
    shown.map((index, position) => [index, `said ${position}`]),
  );

  const streamed = begin({ request: { stream: true } });
  (await streamed.world.transport.call(0)).reply(200, answerOf(written));
  await streamed.end;
  for (const [position, index] of shown.entries()) {
    const said = streamed.client.events.find(
      (event) => event !== '[DONE]' && JSON.stringify(event).includes(`said ${position}`),
    );
    expect(said).toMatchObject({ choices: [{ index }] });
  }
});
