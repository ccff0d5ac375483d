import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { HeldKey } from '../../src/core/candidate.ts';
import { openAiAnswer, openAiChunk, openAiError, openAiStream, sse } from '../harness/vendors/openai-wire.ts';
import type { CallParts } from './story.ts';
import { accountOf, callOf, FakeClient, heldKey, World } from './story.ts';

/** Which of the caller's keys served is on the row, at every way out. */

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
});

afterEach(() => {
  vi.useRealTimers();
});

const keys: readonly HeldKey[] = [
  heldKey('openai', { id: 'key-1' }),
  heldKey('sarvam', { id: 'key-2' }),
  heldKey('self_hosted', { id: 'lab', label: 'lab', createdAtMs: 1 }),
  heldKey('self_hosted', { id: 'prod', label: 'prod', createdAtMs: 2 }),
];

function begin(parts: CallParts = {}, world = new World()) {
  const client = new FakeClient();
  const end = world.answerChat(callOf(parts), accountOf(keys), client, () => Promise.resolve(null));
  return { world, client, end: end.catch((error: unknown) => error) };
}

const answer = openAiAnswer('gpt-test', { text: ['Hello'] });
const token = sse(openAiChunk('gpt-test', { content: 'Hel' }));
const streamed: CallParts = { request: { stream: true } };
const pinned = (selector: string | null): CallParts => ({
  options: { override: { provider: 'self_hosted', selector, model: 'm' } },
});

test.each<[name: string, parts: CallParts, expected: string]>([
  ['the only key of a vendor', {}, 'key-1'],
  ['the newest self_hosted key', pinned(null), 'prod'],
  ['a self_hosted key by its label', pinned('lab'), 'lab'],
])('a JSON answer by %s names it', async (_name, parts, expected) => {
  const { world, end } = begin(parts);
  (await world.transport.call(0)).reply(200, answer);
  await end;
  expect(world.rows).toMatchObject([{ status: 'success', keyId: expected }]);
});

test('an answer after a fallback names the key that served, not the one that failed', async () => {
  const { world, end } = begin(streamed);
  (await world.transport.call(0)).reply(500, openAiError(500));
  (await world.transport.call(1)).stream(...openAiStream('gpt-test', { text: ['Hello'] })).end();
  await end;
  expect(world.rows).toMatchObject([{ status: 'success', keyId: 'key-2' }]);
});

test('a stream that is cut names the key that began it', async () => {
  const { world, end } = begin(streamed);
  (await world.transport.call(0)).stream(token).fail('reset');
  await end;
  expect(world.rows).toMatchObject([{ status: 'incomplete', keyId: 'key-1' }]);
});

test('nobody served: no key is named', async () => {
  const failed = begin();
  (await failed.world.transport.call(0)).reply(500, openAiError(500));
  (await failed.world.transport.call(1)).reply(500, openAiError(500));
  await failed.end;
  expect(failed.world.rows).toMatchObject([{ status: 'error', keyId: null }]);
  const left = begin();
  await left.world.transport.call(0);
  left.client.leave();
  await left.end;
  expect(left.world.rows).toMatchObject([{ status: 'client_closed', keyId: null }]);
});

test('a cache hit names no key', async () => {
  const cached: CallParts = { options: { cacheTtlSeconds: 120 } };
  const first = begin(cached);
  (await first.world.transport.call(0)).reply(200, answer);
  await first.end;
  await begin(cached, first.world).end;
  expect(first.world.rows).toMatchObject([
    { cacheHit: false, keyId: 'key-1' },
    { cacheHit: true, keyId: null },
  ]);
});

test('the keys of a whole account are not kept while a vendor is waited for', async () => {
  const world = new World();
  const holder = { keys };
  const end = world.answerChat(callOf({}), holder, new FakeClient(), () => Promise.resolve(null));
  const call = await world.transport.call(0);
  expect(holder.keys).toEqual([]);
  call.reply(200, answer);
  await end;
});
