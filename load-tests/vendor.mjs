import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * A model vendor in the OpenAI shape for load tests: cheap, on a free loopback port. What it does is told by the
 * provider key of the request: `load-failing` is answered 503, `load-cut` gets a stream that breaks, `load-hold` one
 * whose headers come at once and whose first token is held back, `load-hang` nothing at all, any other key a good
 * answer. `GET /metrics` is the memory of a process that leaks. Run with an IPC channel; it sends `{ url }` and ends
 * with its parent.
 */

/** Pause before the first token and between tokens: a stream is then many reads, as in life. */
const TOKEN_GAP_MS = 5;
const TOKENS = 10;
/** After so many tokens a stream of `load-cut` breaks. */
const CUT_AFTER = 3;
/** Before the first token of `load-hold`; `npm run test:load` expects k6 to see at least this. */
const HOLD_MS = 600;
/** What `/metrics` grows by from one reading to the next. */
const LEAK_BYTES = 2 ** 20;

const usage = { prompt_tokens: 8, completion_tokens: TOKENS, total_tokens: 8 + TOKENS };
const base = { id: 'chatcmpl-load', created: 1_700_000_000, model: 'load-model' };
const words = Array.from({ length: TOKENS }, (_, index) => `word${index} `);

const event = (value) => Buffer.from(`data: ${JSON.stringify(value)}\n\n`);
const chunk = (choices, more = {}) => event({ ...base, object: 'chat.completion.chunk', choices, ...more });

const tokens = words.map((content) => chunk([{ index: 0, delta: { content }, finish_reason: null }]));
const finish = chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]);
const usageChunk = chunk([], { usage });
const done = Buffer.from('data: [DONE]\n\n');

const answer = JSON.stringify({
  ...base,
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: words.join('') }, finish_reason: 'stop' }],
  usage,
});
const failure = JSON.stringify({ error: { message: 'The load test wants it so.', type: 'server_error' } });

/** Also resolves when the gateway leaves in the middle. */
async function stream(response, isCut, holdMs) {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  await delay(holdMs);
  for (const token of isCut ? tokens.slice(0, CUT_AFTER) : tokens) {
    await delay(TOKEN_GAP_MS);
    if (response.destroyed) return;
    response.write(token);
  }
  if (isCut) {
    await delay(TOKEN_GAP_MS);
    response.destroy();
  } else response.end(Buffer.concat([finish, usageChunk, done]));
}

function sendJson(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
}

let leakedBytes = 0;

function sendLeak(response) {
  leakedBytes += LEAK_BYTES;
  response.end(`process_resident_memory_bytes ${leakedBytes}\n`);
}

const server = createServer((request, response) => {
  if (request.url === '/metrics') return sendLeak(response);
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const key = `${request.headers.authorization ?? ''} ${request.headers['api-subscription-key'] ?? ''}`;
    if (key.includes('load-hang')) return;
    if (key.includes('load-failing')) return sendJson(response, 503, failure);
    const body = JSON.parse(Buffer.concat(parts).toString());
    if (body.stream !== true) return sendJson(response, 200, answer);
    return void stream(response, key.includes('load-cut'), key.includes('load-hold') ? HOLD_MS : 0);
  });
});
// Longer than any pause of a load test, so that it is never the vendor who closes a connection.
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send({ url: `http://127.0.0.1:${server.address().port}` }));
process.on('disconnect', () => process.exit(0));
