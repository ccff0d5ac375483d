import type OpenAI from 'openai';

/** What the tests ask through a proxy, and how they look at what comes back. */

export const question = {
  model: 'gw/balanced',
  messages: [{ role: 'user' as const, content: 'Say hello.' }],
};
export const streamed = { ...question, stream: true as const };

/** A proxy that holds an answer back is noticed by then. */
export const patience = () => ({ signal: AbortSignal.timeout(10_000) });

/** The error a promise rejects with. */
export async function rejection(
  promise: PromiseLike<unknown>,
): Promise<InstanceType<typeof OpenAI.APIError>> {
  try {
    await promise;
  } catch (error) {
    return error as InstanceType<typeof OpenAI.APIError>;
  }
  throw new Error('did not fail');
}

export function wordOf(chunk: OpenAI.ChatCompletionChunk): string {
  return chunk.choices[0]?.delta.content ?? '';
}

export async function textOf(stream: AsyncIterable<OpenAI.ChatCompletionChunk>): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += wordOf(chunk);
  return text;
}
