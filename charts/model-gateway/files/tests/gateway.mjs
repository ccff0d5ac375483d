import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** What the chart's test pods share. They run in the gateway's image, with nothing but Node. */

/** Longest wait for one answer; the demo model needs two seconds. */
const TIMEOUT_MS = 30_000;
const DEMO_START_TRIES = 100;

/** Ends the test with a reason on one line. */
export function fail(reason) {
  throw new Error(reason);
}

export function check(condition, reason) {
  if (!condition) fail(reason);
}

/** `{ status, headers, body }`, the body parsed when it is JSON. */
export async function call(url, { method = 'GET', key, headers = {}, body } = {}) {
  const response = await fetch(url, {
    method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: parse(text) };
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Registers a user of this run only and returns its service key; null where registration is closed. */
export async function registerUser(url) {
  const tokenFile = process.env.TEST_REGISTRATION_TOKEN_FILE;
  const { status, body } = await call(`${url}/v1/users`, {
    method: 'POST',
    key: tokenFile === undefined ? undefined : readFileSync(tokenFile, 'utf8').trim(),
    body: { email: `helm-test-${randomUUID()}@example.invalid` },
  });
  if (status === 403 && tokenFile === undefined) return null;
  check(status === 201, `registering a user was answered ${status}: ${JSON.stringify(body)}`);
  return body.api_key;
}

/** Runs `work(key)` while the image's demo model serves from this pod as the user's self_hosted key. */
export async function withDemoModel(url, key, work) {
  const { TEST_DEMO_HOST: host, TEST_DEMO_PORT: port, TEST_DEMO_PROGRAM: program } = process.env;
  const isIPv6 = host.includes(':');
  const demo = spawn(process.execPath, [program, 'demo', port, isIPv6 ? '::' : '0.0.0.0'], { stdio: 'inherit' });
  const address = `http://${isIPv6 ? `[${host}]` : host}:${port}`;
  try {
    await waitForDemo(`${address}/v1/models`);
    const registered = await call(`${url}/v1/keys`, {
      method: 'POST',
      key,
      body: {
        provider: 'self_hosted',
        api_key: 'unused',
        base_url: address,
        declared_region: 'test',
      },
    });
    check(registered.status === 201, `registering the demo model was answered ${registered.status}`);
    await work();
    const deleted = await call(`${url}/v1/keys/${registered.body.id}`, { method: 'DELETE', key });
    check(deleted.status === 204, `deleting the key was answered ${deleted.status}`);
  } finally {
    demo.kill();
  }
}

async function waitForDemo(address) {
  for (let tries = 0; tries < DEMO_START_TRIES; tries += 1) {
    if (await fetch(address).then((response) => response.ok, () => false)) return;
    await sleep(100);
  }
  fail('the demo model did not start');
}

/** A chat request for the demo model. */
export const demoChat = {
  model: 'gw/balanced',
  messages: [{ role: 'user', content: 'Is anybody there?' }],
};

export const demoHeaders = { 'x-gateway-override-model': 'self_hosted:demo' };

/** Runs a test and tells its end in one line; the exit code is the pod's. */
export async function run(name, test) {
  try {
    console.log(`${name}: ${(await test()) ?? 'ok'}`);
    process.exit(0);
  } catch (error) {
    console.error(`${name}: FAILED: ${error.message}`);
    process.exit(1);
  }
}
