import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** What all drivers ask, in every language. */
export const questions = JSON.parse(readFileSync(new URL('questions.json', import.meta.url), 'utf8'));
export const baseUrl = `${process.env.GATEWAY_URL}/v1`;

/** The service key of one call: the user's, unless the test wants another. */
export function keyOf(call) {
  return call.key ?? process.env.GATEWAY_KEY;
}

/** The retries of one call: none, or as many as the client's users get who set nothing. */
export function retriesOf(call) {
  return call.retry === true ? {} : { maxRetries: 0 };
}

/** What the errors of OpenAI's own client say, which other clients pass on. */
export const openAiError = (error) => ({
  class: error.constructor.name,
  status: error.status ?? null,
  type: error.type ?? null,
  code: error.code ?? null,
  message: error.message,
  retryAfter: error.headers?.get('retry-after') ?? null,
  requestId: error.requestID ?? null,
});

/**
 * Answers calls, one JSON object a line: `{"do": …}` on stdin, `{"seen": …}` or `{"failure": …}` on stdout.
 * `describe` tells what the client's user finds in an error; `text` of a stream that fails is kept beside it.
 */
export async function serve(actions, describe) {
  for await (const line of createInterface({ input: process.stdin })) {
    const call = JSON.parse(line);
    const progress = { text: '' };
    let reply;
    try {
      reply = { seen: await actions[call.do](call, progress) };
    } catch (error) {
      reply = { failure: { ...describe(error), text: progress.text } };
    }
    process.stdout.write(`${JSON.stringify(reply)}\n`);
  }
}
