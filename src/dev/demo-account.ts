import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { StartError } from './start-error.ts';

/** The gateway is on this machine; slower than this means that it hangs. */
const callTimeoutMs = 10_000;
const demoLabel = 'demo';
const stateMode = 0o600;

const stateSchema = z.object({ email: z.string(), api_key: z.string(), demo_port: z.number().int() });
/** What `demo.json` keeps for the next start. */
export type DemoState = z.infer<typeof stateSchema>;

const userSchema = z.object({ email: z.string(), api_key: z.string() });
const keySchema = z.object({ id: z.string(), base_url: z.string().nullable(), label: z.string().nullable() });

/** The kept state, or null at the first start or when the file is damaged. */
export function readDemoState(path: string): DemoState | null {
  try {
    return stateSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return null;
  }
}

/** Replaces the file in one step; it holds a service key, hence the mode. */
export function writeDemoState(path: string, state: DemoState): void {
  const partial = `${path}.partial`;
  writeFileSync(partial, `${JSON.stringify(state, null, 2)}\n`, { mode: stateMode });
  renameSync(partial, path);
}

/**
 * Makes sure, by the public API alone, that a demo user exists who holds a self_hosted key to the demo model
 * server. Returns the user with a working service key. Throws StartError when the gateway refuses.
 */
export async function ensureDemoAccount(
  gatewayUrl: string,
  demoUrl: string,
  kept: DemoState | null,
): Promise<Pick<DemoState, 'email' | 'api_key'>> {
  const user = (await stillWorks(gatewayUrl, kept)) ?? (await newDemoUser(gatewayUrl));
  const keys = z.array(keySchema).parse(await call(gatewayUrl, 'GET', '/v1/keys', user.api_key).then(ok));
  const demoKeys = keys.filter((key) => key.label === demoLabel);
  if (demoKeys.some((key) => key.base_url === demoUrl)) return user;
  for (const key of demoKeys) await call(gatewayUrl, 'DELETE', `/v1/keys/${key.id}`, user.api_key).then(ok);
  const record = {
    provider: 'self_hosted',
    api_key: 'not-needed',
    base_url: demoUrl,
    declared_region: 'local',
    label: demoLabel,
  };
  await call(gatewayUrl, 'POST', '/v1/keys', user.api_key, record).then(ok);
  return user;
}

/** The kept user, unless the database is another one by now. */
async function stillWorks(gatewayUrl: string, kept: DemoState | null): Promise<DemoState | null> {
  if (kept === null) return null;
  const answer = await call(gatewayUrl, 'GET', '/v1/keys', kept.api_key);
  return answer.status === 200 ? kept : null;
}

async function newDemoUser(gatewayUrl: string): Promise<z.infer<typeof userSchema>> {
  let answer = await call(gatewayUrl, 'POST', '/v1/users', null, { email: 'demo@example.com' });
  if (answer.status === 409) {
    // demo.json was lost, and the key of the first demo user with it
    const email = `demo-${randomBytes(4).toString('hex')}@example.com`;
    answer = await call(gatewayUrl, 'POST', '/v1/users', null, { email });
  }
  return userSchema.parse(ok(answer));
}

interface Answer {
  readonly what: string;
  readonly status: number;
  readonly text: string;
}

function ok(answer: Answer): unknown {
  if (answer.status < 200 || answer.status > 299) {
    throw new StartError(`The demo account could not be set up: ${answer.what} answered ${answer.status}.`);
  }
  return answer.text === '' ? null : JSON.parse(answer.text);
}

async function call(
  gatewayUrl: string,
  method: string,
  path: string,
  apiKey: string | null,
  body?: unknown,
): Promise<Answer> {
  const headers: Record<string, string> = {};
  if (apiKey !== null) headers['authorization'] = `Bearer ${apiKey}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const response = await fetch(new URL(path, gatewayUrl), {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(callTimeoutMs),
  });
  return { what: `${method} ${path}`, status: response.status, text: await response.text() };
}
