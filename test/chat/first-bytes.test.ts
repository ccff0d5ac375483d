import { expect, test } from 'vitest';
import { defaultOpenAiUsage, openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import { accountOf, callOf, FakeClient, heldKey, settled, World } from './story.ts';

test('what has come of an answer leaves before its end, of the same read, is settled', async () => {
  const world = new World();
  const client = new FakeClient();
  let hadBefore = '';
  const { record } = world.deps.requestLog;
  world.deps.requestLog.record = (row) => {
    hadBefore = client.flushed;
    return record(row);
  };
  const running = world.answerChat(
    callOf({ request: { stream: true } }),
    accountOf([heldKey('openai')]),
    client,
    () => Promise.resolve(null),
  );
  await settled();
  const token = sse(openAiChunk('m', { role: 'assistant', content: 'Hi' }));
  const rest =
    sse(openAiChunk('m', {}, 'stop')) + sse({ ...openAiChunk('m', {}), usage: defaultOpenAiUsage });
  world.transport.calls[0]?.stream(token + rest + sse('[DONE]')).end();
  await running;
  expect(hadBefore).toContain('"content":"Hi"');
  expect(world.rows).toHaveLength(1);
});
