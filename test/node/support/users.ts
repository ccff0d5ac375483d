import { expect } from 'vitest';
import { chatBody, chatPath } from '../../harness/gateway/chat.ts';
import type { HttpClient } from '../../harness/gateway/http-client.ts';
import { httpClient } from '../../harness/gateway/http-client.ts';
import type { User } from '../../harness/gateway/register.ts';
import { addKey, registerUser } from '../../harness/gateway/register.ts';
import type { SseReader } from '../../harness/gateway/sse-reader.ts';
import type { FakeVendor } from '../../harness/vendors/fake-vendor.ts';
import { startFakeVendor } from '../../harness/vendors/fake-vendor.ts';
import { defaultOpenAiUsage, openAiChunk, sse } from '../../harness/vendors/openai-wire.ts';
import type { Script, Step } from '../../harness/vendors/vendor-reply.ts';
import { openDoor } from './door.ts';
import { vendorPort } from './release.ts';

/** Between two tokens of a stream that a test holds open: well below every limit of silence. */
const tokenMs = 250;

/** A fake OpenAI that pods reach. */
export async function startVendorForPods(): Promise<FakeVendor> {
  const vendor = await startFakeVendor();
  const door = await openDoor(vendorPort, vendor.url);
  return {
    ...vendor,
    close: async () => {
      await door.close();
      await vendor.close();
    },
  };
}

/** A new user with a key for the fake OpenAI. */
export async function openAiUser(url: string): Promise<User> {
  const user = await registerUser(url);
  await addKey(user, { provider: 'openai', api_key: 'sk-node-test' });
  return user;
}

/** The same user at another address of the same gateways. */
export const clientAt = (url: string, user: User): HttpClient => httpClient(url, user.key);

/** Streams of a user, each with its first token: `hold` says to the fake vendor which script answers them. */
export function heldStreams(user: User, count: number): Promise<SseReader[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const body = chatBody({ stream: true, messages: [{ role: 'user', content: 'hold' }] });
      const reader = await user.client.stream(chatPath, body);
      expect(await reader.nextContent()).toBe('tick ');
      return reader;
    }),
  );
}

/** A stream that goes on until the test lets it end. */
export function endlessStream(): { readonly script: Script; end(): void } {
  let isEnding = false;
  const script: Script = (request) => {
    const model = String(request.body['model']);
    function* steps(): Generator<Step> {
      yield sse(openAiChunk(model, { role: 'assistant', content: '' }));
      while (!isEnding) {
        yield sse(openAiChunk(model, { content: 'tick ' }));
        yield { waitMs: tokenMs };
      }
      yield sse(openAiChunk(model, {}, 'stop'));
      yield sse({ ...openAiChunk(model, {}), choices: [], usage: defaultOpenAiUsage });
      yield sse('[DONE]');
    }
    return {
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body: steps(),
      ending: 'complete',
    };
  };
  return {
    script,
    end: () => {
      isEnding = true;
    },
  };
}
