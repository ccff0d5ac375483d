import { expect, test } from 'vitest';
import { ClientGoneError } from '../../src/chat/answer-chat.ts';
import { accountOf, callOf, FakeClient, heldKey, settled, World } from './story.ts';

/** Requests of which nothing ever reached a vendor must not look as if something had. */

const cached = { options: { cacheTtlSeconds: 60 } };

test('a client that leaves while it waits for an equal request has a row without any attempt', async () => {
  const world = new World();
  const account = () => accountOf([heldKey('openai')]);
  const refresh = () => Promise.resolve(null);
  const first = world.answerChat(callOf(cached), account(), new FakeClient(), refresh);
  const upstream = await world.transport.call(0);
  const leaving = new FakeClient();
  const second = world
    .answerChat(callOf(cached), account(), leaving, refresh)
    .catch((thrown: unknown) => thrown);
  await settled();
  leaving.controller.abort('client-gone');
  expect(await second).toBeInstanceOf(ClientGoneError);
  expect(world.rows).toMatchObject([
    { status: 'client_closed', provider: 'none', model: 'none', tries: 0, attempts: [] },
  ]);
  expect(world.opened).toHaveLength(1);
  expect(world.transport.calls).toHaveLength(1);
  upstream.fail('reset');
  await first.catch(() => undefined);
});

test('a key whose address cannot be read is not taken for one that does not open', async () => {
  const world = new World();
  const account = accountOf([heldKey('self_hosted', { baseUrl: 'no address' })]);
  const override = { provider: 'self_hosted', selector: null, model: 'm' } as const;
  const call = callOf({ options: { override } });
  const error = await world
    .answerChat(call, account, new FakeClient(), () => Promise.resolve(null))
    .catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ status: 502, message: expect.stringContaining('address') });
  expect(world.unopened).toEqual([]);
});
