/**
 * Whoever may come in begins a request and sends its body later: what was decided meanwhile holds for it, since it says
 * only then what it wants. A client that keeps such requests open would else outlive its key, its user and its bounds.
 */
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { chat, chatBody, chatPath } from '../harness/gateway/chat.ts';
import type { HttpClient } from '../harness/gateway/http-client.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { addKey, registerUser } from '../harness/gateway/register.ts';
import { tables } from '../harness/gateway/tables.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { useReplica } from '../harness/gateway/use-replica.ts';
import { eventually } from '../harness/measure/eventually.ts';

const token = 'an-admin-token-of-sufficient-length';
const gateway = useGateway({ env: { GW_ADMIN_TOKEN: token } });
const other = useReplica(gateway);

/** Longer than what was found of a caller goes unasked. */
const lateMs = 50;

interface BegunRequest {
  readonly beganAtMs: number;
  /** Sends the body; the status line of the answer. */
  finish(): Promise<string>;
}

/** Resolves once the gateway has read the head of the request and asks for its body. */
function begin({ url }: HttpClient, key: string, path: string, body: unknown): Promise<BegunRequest> {
  const text = JSON.stringify(body);
  const { hostname, port } = new URL(url);
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: gateway',
    'connection: close',
    'expect: 100-continue',
    `authorization: Bearer ${key}`,
    'content-type: application/json',
    `content-length: ${text.length}`,
  ];
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(Number(port), hostname, () => socket.write(`${head.join('\r\n')}\r\n\r\n`));
    const ended = new Promise<string>((end) => socket.on('close', () => end(answer)));
    const finish = async () => {
      socket.write(text);
      const [, , status = ''] = (await ended).split('\r\n', 3);
      return status;
    };
    socket.on('error', reject);
    socket.on('data', (bytes: Buffer) => {
      answer += bytes.toString('latin1');
      if (answer === 'HTTP/1.1 100 Continue\r\n\r\n') resolve({ beganAtMs: performance.now(), finish });
    });
  });
}

const operator = () => httpClient(gateway.adminUrl, token);
const patch = (id: string, body: unknown) => operator().request('PATCH', `/admin/users/${id}`, { body });

interface Caller extends User {
  /** One of two service keys, which is not the one of `client`. */
  readonly secondKey: string;
  readonly secondKeyId: string;
  readonly providerKeyId: string;
}

async function register(): Promise<Caller> {
  const user = await registerUser(gateway.url);
  const { id: providerKeyId } = await addKey(user, { provider: 'openai', api_key: `sk-${user.id}` });
  const made = await user.client.post('/v1/service-keys', {});
  const { id: secondKeyId, api_key: secondKey } = made.json<{ id: string; api_key: string }>();
  return { ...user, secondKey, secondKeyId, providerKeyId };
}

type Decide = (caller: Caller) => Promise<unknown>;

const revoked: Decide = ({ client, secondKeyId }) => client.delete(`/v1/service-keys/${secondKeyId}`);
const disabled: Decide = ({ id }) => patch(id, { disabled: true });
const bound: Decide = ({ id }) => patch(id, { residency: 'india' });
const keyless: Decide = ({ client, providerKeyId }) => client.delete(`/v1/keys/${providerKeyId}`);

const prompt = { messages: [{ role: 'user', content: 'said late' }] };
const aChat = [chatPath, chatBody(prompt)] as const;
const aServiceKey = ['/v1/service-keys', {}] as const;
const aProviderKey = ['/v1/keys', { provider: 'sarvam', api_key: 'sk-late' }] as const;

describe.each<[string, Decide, readonly [path: string, body: unknown], number]>([
  ['whose key was revoked gets no answer', revoked, aChat, 401],
  ['whose key was revoked makes no other one', revoked, aServiceKey, 401],
  ['whose key was revoked stores nothing', revoked, aProviderKey, 401],
  ['who was disabled gets no answer', disabled, aChat, 401],
  ['who was disabled makes no service key', disabled, aServiceKey, 401],
  ['who was bound to India asks nobody outside', bound, aChat, 422],
  ['who has deleted the provider key asks nobody with it', keyless, aChat, 422],
])('a caller %s, once the body is there', (_name, decide, [path, body], status) => {
  test.each<[string, () => string]>([
    ['the replica that was told', () => gateway.url],
    ['another replica', () => other.url],
  ])('on %s', async (_where, url) => {
    const caller = await register();
    const client = httpClient(url(), caller.secondKey);
    expect((await chat(client)).status).toBe(200);
    const before = gateway.vendors.openai.ledger.length;
    const begun = await begin(client, caller.secondKey, path, body);
    await decide(caller);
    await eventually(async () => (await chat(client)).status !== 200 || undefined);
    await eventually(async () => performance.now() - begun.beganAtMs > lateMs || undefined);
    expect(await begun.finish()).toContain(` ${status} `);
    const asked = gateway.vendors.openai.ledger.slice(before);
    expect(asked.filter(({ bodyText }) => bodyText.includes('said late'))).toEqual([]);
  });
});

test('a deployment that was bound to India asks nobody outside for what is said only then', async () => {
  const caller = await register();
  expect((await chat(caller.client)).status).toBe(200);
  const begun = await begin(caller.client, caller.key, ...aChat);
  gateway.vendors.clear();
  try {
    await gateway.writeTables(tables({ residency: { policy: 'india' } }));
    await eventually(async () => (await chat(caller.client)).status === 422 || undefined);
    await eventually(async () => performance.now() - begun.beganAtMs > lateMs || undefined);
    expect(await begun.finish()).toContain(' 422 ');
  } finally {
    await gateway.writeTables(tables());
  }
  const { ledger } = gateway.vendors.openai;
  expect(ledger.filter(({ bodyText }) => bodyText.includes('said late'))).toEqual([]);
  await eventually(async () => (await chat(caller.client)).status === 200 || undefined);
});

test('a caller of whom nothing was decided is served, however late the body comes', async () => {
  const caller = await register();
  expect((await chat(caller.client)).status).toBe(200);
  const begun = await begin(caller.client, caller.key, ...aChat);
  await eventually(async () => performance.now() - begun.beganAtMs > lateMs || undefined);
  expect(await begun.finish()).toContain(' 200 ');
});
