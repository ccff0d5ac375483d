import { check, fail } from 'k6';
import http from 'k6/http';
import { Counter } from 'k6/metrics';
import { readStream } from './sse.js';

/** The deployment under test, without a trailing slash. */
const baseUrl = (__ENV.BASE_URL ?? 'http://127.0.0.1:8080').replace(/\/+$/, '');
const model = __ENV.MODEL ?? 'gw/balanced';
/** `provider:model`, for a deployment that is to be tested with one model only. */
const overrideModel = __ENV.OVERRIDE_MODEL;
/** Least number of content chunks of a stream: one alone would mean that something held the others back. */
const minChunks = Number(__ENV.MIN_CHUNKS ?? 2);
/** Most of them, for a vendor that is known to send so many. */
const maxChunks = Number(__ENV.MAX_CHUNKS ?? Number.POSITIVE_INFINITY);
const maxTokens = Number(__ENV.MAX_TOKENS ?? 32);

/** After a run k6 waits 30 s for its open requests and then forgets them: what hangs must have failed before. */
const GRACEFUL_STOP_SECONDS = 30;
const timeoutSeconds = Number(__ENV.TIMEOUT_SECONDS ?? 25);
if (!(timeoutSeconds > 0 && timeoutSeconds < GRACEFUL_STOP_SECONDS)) {
  throw new Error(`TIMEOUT_SECONDS must be above 0 and below ${GRACEFUL_STOP_SECONDS}.`);
}
const timeout = `${timeoutSeconds}s`;

/** Answers that were right in every respect. */
const wholeStreams = new Counter('whole_streams');
const wholeAnswers = new Counter('whole_answers');

/** What load-tests/vendor.mjs does for a request is told by the provider key that comes with it. */
const vendorKey = __ENV.PROVIDER_KEY ?? 'load-healthy';
const loopback = /^https?:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/;

/**
 * The service key to send: API_KEY, or that of a new user with the given provider keys (secret per provider) where
 * the gateway is a local one. Ends the test run with a reason when there is neither.
 */
export function serviceKey(secrets = {}) {
  if (__ENV.API_KEY) return __ENV.API_KEY;
  if (!loopback.test(baseUrl)) fail(`API_KEY is needed: ${baseUrl} is not a gateway on this machine.`);
  const email = `load-${Date.now()}-${Math.floor(Math.random() * 1e9)}@example.com`;
  const key = created('/v1/users', __ENV.REGISTRATION_TOKEN, { email }).api_key;
  for (const provider of ['openai', 'sarvam']) {
    created('/v1/keys', key, { provider, api_key: secrets[provider] ?? vendorKey });
  }
  return key;
}

function created(path, token, body) {
  const response = http.post(`${baseUrl}${path}`, JSON.stringify(body), {
    headers: headersWith(token),
    timeout,
  });
  if (response.status !== 201) fail(`POST ${path} was answered ${response.status}: ${response.body}`);
  return response.json();
}

function headersWith(token) {
  const authorization = token ? { authorization: `Bearer ${token}` } : {};
  return { 'content-type': 'application/json', ...authorization };
}

/** One chat request, tagged `name:chat` unless told otherwise; the k6 response. */
export function chat(key, { stream = false, prompt = 'Count to ten.', headers = {}, name = 'chat' } = {}) {
  const override = overrideModel ? { 'x-gateway-override-model': overrideModel } : {};
  const body = { model, stream, max_tokens: maxTokens, messages: [{ role: 'user', content: prompt }] };
  return http.post(`${baseUrl}/v1/chat/completions`, JSON.stringify(body), {
    headers: { ...headersWith(key), ...override, ...headers },
    tags: { name },
    timeout,
  });
}

/** The newest log rows since an instant (ISO 8601), at most as many as one page holds. */
export function logRows(key, since) {
  const query = `since=${encodeURIComponent(since)}&limit=1000`;
  const response = http.get(`${baseUrl}/v1/logs?${query}`, {
    headers: headersWith(key),
    tags: { name: 'logs' },
    timeout,
  });
  return response.status === 200 ? response.json('data') : null;
}

/** Checks a streamed answer; the `gateway` block of it, or null. */
export function checkStream(response) {
  const stream = readStream(response.status === 200 ? response.body : '');
  const isWhole = check(response, {
    'status is 200': ({ status }) => status === 200,
    'is an event stream': () => header(response, 'Content-Type').startsWith('text/event-stream'),
    'no error event': () => stream.error === null,
    'as many content chunks as expected': () =>
      stream.contentChunks >= minChunks && stream.contentChunks <= maxChunks,
    'one gateway block': () => stream.gatewayBlocks === 1,
    'gateway block on the final chunk': () => stream.isGatewayLast,
    'ends with [DONE]': () => stream.hasEnd,
    'gateway block is right': () => isRightBlock(stream.gateway, response),
  });
  if (isWhole) wholeStreams.add(1);
  return stream.gateway;
}

/** Checks a JSON answer; `{ gateway, content }`, both null when it is not one. */
export function checkJson(response) {
  const answer = response.status === 200 ? parse(response.body) : null;
  const content = answer?.choices?.[0]?.message?.content ?? null;
  const gateway = answer?.gateway ?? null;
  const isWhole = check(response, {
    'status is 200': ({ status }) => status === 200,
    'is a completion': () => answer?.object === 'chat.completion',
    'has content': () => typeof content === 'string' && content !== '',
    'usage adds up': () => addsUp(answer?.usage),
    'gateway block is right': () => isRightBlock(gateway, response),
  });
  if (isWhole) wholeAnswers.add(1);
  return { gateway, content };
}

/** A refusal as documented for overload: 503 in the error envelope, with a hint when to come back. */
export function isPoliteRefusal(response) {
  const error = parse(response.body)?.error;
  return (
    response.status === 503 &&
    error?.type === 'service_unavailable_error' &&
    header(response, 'Retry-After') !== ''
  );
}

function isRightBlock(gateway, response) {
  return (
    gateway?.mode === (overrideModel ? 'override' : model) &&
    gateway.request_id === header(response, 'X-Request-Id') &&
    /^\d+\.\d{6}$/.test(gateway.cost_usd) &&
    Number.isInteger(gateway.latency_ms)
  );
}

function addsUp(usage) {
  return usage?.total_tokens > 0 && usage.total_tokens === usage.prompt_tokens + usage.completion_tokens;
}

/** k6 spells header names in canonical form. */
function header(response, name) {
  return response.headers[name] ?? '';
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
