/** Residency that an operator decides, for a user or for the whole deployment: a request can tighten, never loosen. */
import { describe, expect, test } from 'vitest';
import { runCommand } from '../commands/run-command.ts';
import { chat, chatOk, logRowsOnceThere } from '../harness/gateway/chat.ts';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { tables } from '../harness/gateway/tables.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { useReplica } from '../harness/gateway/use-replica.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';

const gateway = useGateway();
const other = useReplica(gateway);

async function bind(user: User, residency: 'india' | 'none'): Promise<void> {
  const ended = await runCommand(['users', 'set-residency', user.id, residency], {
    DATABASE_URL: gateway.database.url,
  });
  expect(ended).toMatchObject({ code: 0, stderr: '' });
}

/** By whose word the user's newest request stayed in India. */
async function boundBy({ client }: User): Promise<unknown> {
  const [row] = await logRowsOnceThere(client, 1);
  return (await client.get(`/v1/logs/${row?.id}`)).json<{ residency_bound_by: unknown }>().residency_bound_by;
}

const marked = (text: string) => ({ messages: [{ role: 'user', content: text }] });
const residencyError = { status: 422, type: 'residency_error', code: 'residency_unavailable' };

/** Vendors outside India that have seen this text. */
const leaked = ({ vendors: { openai, anthropic, together } }: GatewayUnderTest, text: string): number =>
  [openai, anthropic, together].filter(({ ledger }) => ledger.some(({ bodyText }) => bodyText.includes(text)))
    .length;

describe('a user bound to India', () => {
  test('is served in India only, on every replica, within a second; and freely again afterwards', async () => {
    const user = await registerWithKeys(gateway.url);
    const elsewhere = httpClient(other.url, user.key);
    expect((await chatOk(user.client)).gateway.residency_actual).toBe('global');
    expect((await chatOk(elsewhere)).gateway.residency_actual).toBe('global');
    await bind(user, 'india');
    const boundAtMs = performance.now();
    for (const client of [user.client, elsewhere])
      await expect
        .poll(async () => (await chatOk(client)).gateway.residency_actual, { interval: 1 })
        .toBe('india');
    expectInTime(performance.now() - boundAtMs, 1_000);
    for (const client of [user.client, elsewhere]) await chatOk(client, marked('only in india'));
    expect(leaked(gateway, 'only in india')).toBe(0);
    await bind(user, 'none');
    await expect.poll(async () => (await chatOk(user.client)).gateway.residency_actual).toBe('global');
  });

  test('cannot loosen it, by header, override or cache', async () => {
    const user = await registerWithKeys(gateway.url);
    const cached = { 'x-gateway-cache': 'true' };
    await chatOk(user.client, marked('asked before'), cached);
    await bind(user, 'india');
    await expect.poll(async () => (await chatOk(user.client)).gateway.residency_actual).toBe('india');
    gateway.vendors.clear();
    expectInvalid(await chat(user.client, {}, { 'x-gateway-residency': 'global' }), 'X-Gateway-Residency');
    const override = { 'x-gateway-override-model': 'openai:gpt-test' };
    expectError(await chat(user.client, marked('by override'), override), residencyError);
    const { gateway: block } = await chatOk(user.client, marked('asked before'), cached);
    expect(block).toMatchObject({ cache_hit: false, residency_actual: 'india' });
    for (const text of ['by override', 'asked before']) expect(leaked(gateway, text)).toBe(0);
    expect((await chatOk(user.client, marked('asked before'), cached)).gateway.cache_hit).toBe(true);
  });

  test('without a key in India gets a residency_error, and rows say what was required', async () => {
    const user = await registerWithKeys(gateway.url, ['openai']);
    await bind(user, 'india');
    await expect.poll(async () => (await chat(user.client)).status).toBe(422);
    gateway.vendors.clear();
    expectError(await chat(user.client, marked('nowhere')), residencyError);
    expect(leaked(gateway, 'nowhere')).toBe(0);
    const [row] = await logRowsOnceThere(user.client, 2);
    expect(row).toMatchObject({ residency_requested: 'india', status: 'error' });
    expect(await boundBy(user)).toBe('user');
  });

  test('is told apart from one that asked, and from one that was free, on the row', async () => {
    const user = await registerWithKeys(gateway.url);
    await chatOk(user.client);
    expect(await boundBy(user)).toBeNull();
    await chatOk(user.client, {}, { 'x-gateway-residency': 'india' });
    expect(await boundBy(user)).toBe('request');
  });
});

describe('a deployment bound to India by its tables', () => {
  const bound = useGateway({ tables: tables({ residency: { policy: 'india' } }) });

  test('serves everybody in India, and may be loosened by its tables only', async () => {
    const user = await registerWithKeys(bound.url);
    expect((await chatOk(user.client, marked('deployment'))).gateway.residency_actual).toBe('india');
    const override = { 'x-gateway-override-model': 'anthropic:claude-test' };
    expect(await boundBy(user)).toBe('deployment');
    expectError(await chat(user.client, marked('deployment'), override), residencyError);
    expect(leaked(bound, 'deployment')).toBe(0);
    await bound.writeTables(tables());
    await expect.poll(async () => (await chatOk(user.client)).gateway.residency_actual).toBe('global');
  });
});
